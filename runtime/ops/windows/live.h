// Where each row of a padded batch ends, after convolutions and pools with strides.
//
// A request of a padded batch has fewer positions than its recipe. Nodes that look ahead find the
// border of the request there, and not the values that padding became (passes/live makes these
// nodes).
//
//   reprise.LiveExtent(live bool [B, S], all i64 [1]; offset, stride) -> i32 [B]
//     how many positions each row has: `all` where all of its S elements are ones, so that a row
//     without padding is not changed; else floor((the number of its leading ones + offset) /
//     stride), at least 0
//   reprise.LiveFill(x [B * h, ...], extent i32 [B]; axis, value) -> like x
//     x with `value` at the positions of dim `axis` after the extent of each row; a row of the
//     extents is h rows of x. Among integers and bools minus infinity is the lowest, infinity the
//     highest
//   reprise.LiveMask(extent i32 [B], size i64 [1]; rank, value) -> f32 [B, 1, ..., size]
//     0 at the positions of each row, `value` after them: added to scores
//   reprise.LiveShare(extent i32 [B], size i64 [1]; rank, axis, kernel, stride, dilation, begin,
//                     end, more, counts_pads) -> f32 [B, 1, ..., windows, ..., 1]
//     the factor that turns the sum of a window divided by the number of its elements into the
//     average of its elements that count: the row's own, and the `begin` and `end` pads of the node
//     around them with counts_pads. 0 where none counts. Windows slide over `size` positions with
//     `begin` pads before and `end` + `more` after them; farther ones do not exist
//   reprise.LiveCompact(x [B * h, ..., n, ...], sizes i64 [dims], extents i32 [B]...; axis, ranks,
//                       extents) -> like x
//     x with the elements of each row's request first along dim `axis`, in their order, and then
//     zeros. The dim is several parts, one after another; part k is `ranks`[k] dims that
//     became one, of the next of `sizes`. `extents`[d] is the operand, counted from 2 on, that says
//     how many places of dim d each row has; -1: all
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/graph/extent.h"
#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

Rule LiveExtentRule, LiveFillRule, LiveMaskRule, LiveShareRule, LiveCompactRule;
Kernel LiveExtentKernel, LiveFillKernel, LiveMaskKernel, LiveShareKernel, LiveCompactKernel;

// The windows of a LiveShare.
struct SharedWindows {
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t begin = 0, end = 0;  // pads of the node
  int64_t more = 0;            // positions after these, which never count
  bool counts_pads = false;

  static SharedWindows Of(const Node& node);
  // Returns the distance between a window's first and last elements.
  int64_t reach() const { return (kernel - 1) * dilation; }
  // Returns how many windows there are over `size` positions; at most 0: none.
  int64_t Over(int64_t size) const;
  Size Over(Size size) const;
  // Returns the share of window `o` of a row with `live` of `size` positions.
  float Share(int64_t o, int64_t live, int64_t size) const;
};

// Returns the positions that LiveFill keeps: the ones before this index, in a line of `size` of
// them.
inline int64_t LivePositions(int32_t extent, int64_t size) {
  return std::clamp<int64_t>(extent, 0, size);
}

// The parts of a dim that LiveCompact looks at: plain bytes, as the parameters of a launch are.
struct MergedDims {
  static constexpr int kMostParts = 16, kMostDims = 64;

  int parts = 0;
  int ranks[kMostParts] = {};
  int64_t sizes[kMostDims] = {};
  int extents[kMostDims] = {};  // the number of an operand for each dim, or -1

  // Returns INVALID_ARGUMENT for attributes that do not go with `sizes` or with each other.
  static absl::StatusOr<MergedDims> Of(const Node& node, absl::Span<const int64_t> sizes);
  // Returns the number of places of all parts.
  int64_t Size() const;
  // Moves the elements of row `row`, `bytes` each, from one line to another. `of_rows`: the
  // operands with extents.
  void Compact(const int32_t* const* of_rows, int64_t row, int64_t bytes, const std::byte* from,
               std::byte* to) const;
};

// Returns the result of LiveExtent for one row.
int32_t LiveExtentOf(const uint8_t* live, int64_t size, int64_t all, const Extent& extent);

}  // namespace reprise::ops
