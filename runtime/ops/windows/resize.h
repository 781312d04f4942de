// Resize: an operand sampled at other positions.
#pragma once

#include <vector>

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// Resize(x, roi?, scales?, sizes?): modes nearest, linear and cubic, one dim after the other.
// Linear samples between integers are truncated towards zero where exact sums would be, as
// onnxruntime does (ONNX does not say): floating-point sums may be off by up to this.
inline constexpr float kResizeSumsAreOffBy = 1.0f / 1024;
Rule ResizeRule;
Kernel ResizeKernel;

// One of the elements that a position of a dim is made of.
struct ResizeTap {
  int64_t at;
  float weight;
};
// The taps of each position, in the order of the sum. Empty: the dim stays as it is.
using ResizeTaps = std::vector<std::vector<ResizeTap>>;

// Returns how a Resize of an operand of shape `in` samples each of its dims. `scales` and `sizes`
// are the operands of that name, empty where they are left out. UNIMPLEMENTED for samples of a
// crop, some of which are of no element.
absl::StatusOr<std::vector<ResizeTaps>> ResizeTapsOf(const Node& node, const Shape& in,
                                                     const std::vector<double>& scales,
                                                     const std::vector<double>& sizes);

}  // namespace reprise::ops
