// DeformConv: a convolution whose windows read at places that an operand gives.
#pragma once

#include "runtime/ops/kit/infer.h"
#include "runtime/ops/windows/windows.h"

namespace reprise::ops {

// DeformConv(x [batch, channels, dims...], weight [maps, channels / group, kernel...], offset
// [batch, offset_group * taps * dims, out dims...], bias? [maps], mask? [batch, offset_group *
// taps, out dims...]). Each tap of a window reads at its usual place plus its offset, linearly
// between elements and as zero beyond them, times its mask. The channels of an offset group share
// offsets and masks.
Rule DeformConvRule;
Kernel DeformConvKernel;

// reprise.DeformColumns(x, offset, mask?): the elements that its windows read, as the left side of
// the product that a DeformConv of `group` = 1 is: [batch, windows, channels * taps]. Attributes
// are DeformConv's, and kernel_shape is given.
Rule DeformColumnsRule;
Kernel DeformColumnsKernel;

// The windows that read x. `windows.out` are the dims of the result.
template <typename Number>
struct BasicDeformWindows {
  BasicWindows<Number> windows;
  int64_t taps = 1;    // each window has
  int64_t groups = 1;  // groups of channels that share offsets
};
using DeformWindows = BasicDeformWindows<int64_t>;

// Returns the windows of `node` over operands of these shapes; `mask`: null where it is left out.
// INVALID_ARGUMENT naming the operand that does not fit.
absl::StatusOr<DeformWindows> DeformWindowsOf(const Node& node, const Shape& x,
                                              std::vector<int64_t> kernel, const Shape& offset,
                                              const Shape* mask);
absl::StatusOr<BasicDeformWindows<Size>> DeformWindowsOf(const Node& node, const SizeList& x,
                                                         std::vector<int64_t> kernel,
                                                         const SizeList& offset,
                                                         const SizeList* mask);

}  // namespace reprise::ops
