// Where each row of a padded batch ends, behind convolutions and pools with strides.
//
// A request of a padded batch has fewer positions than its recipe. Nodes that look ahead find the
// border of the request there, and not what padding became (passes/live makes these nodes).
//
//   reprise.LiveExtent(live bool [B, S], all i64 [1]; offset, stride) -> i32 [B]
//     how many positions each row has: `all` where all of its S elements are ones, so that what is
//     not padded is not changed; else floor((the number of its leading ones + offset) / stride), at
//     least 0
//   reprise.LiveFill(x [B * h, ...], extent i32 [B]; axis, value) -> like x
//     x with `value` at the positions of dim `axis` behind the extent of each row; a row of the
//     extents is h rows of x
//   reprise.LiveMask(extent i32 [B], size i64 [1]; rank, value) -> f32 [B, 1, ..., size]
//     0 at the positions of each row, `value` behind them: added to scores
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/graph/extent.h"
#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

Rule LiveExtentRule, LiveFillRule, LiveMaskRule;
Kernel LiveExtentKernel, LiveFillKernel, LiveMaskKernel;

// LiveFill leaves the positions before this one, in a line of `size` of them.
inline int64_t LivePositions(int32_t extent, int64_t size) {
  return std::clamp<int64_t>(extent, 0, size);
}

// The result of LiveExtent for one row.
int32_t LiveExtentOf(const uint8_t* live, int64_t size, int64_t all, const Extent& extent);

}  // namespace reprise::ops
