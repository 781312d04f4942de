// Resize: an operand sampled at other positions.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
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
// The taps of positions in a row, each position's in the order of the sum. Empty: the dim stays as
// it is.
class ResizeTaps {
 public:
  bool empty() const { return ends_.empty(); }
  size_t size() const { return ends_.size(); }
  absl::Span<const ResizeTap> operator[](size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return absl::MakeConstSpan(taps_).subspan(begin, ends_[i] - begin);
  }
  // Adds a tap of the position that End ends.
  void Add(ResizeTap tap) { taps_.push_back(tap); }
  void End() { ends_.push_back(taps_.size()); }
  void Clear() {
    taps_.clear();
    ends_.clear();
  }

 private:
  std::vector<ResizeTap> taps_;
  std::vector<size_t> ends_;
};

// Returns how a Resize of an operand of shape `in` samples each of its dims. `scales` and `sizes`
// are the operands of that name, empty where they are left out. UNIMPLEMENTED for samples of a
// crop, some of which are of no element, and for dims of more than kMostKeptPositions.
inline constexpr int64_t kMostKeptPositions = 1 << 18;
absl::StatusOr<std::vector<ResizeTaps>> ResizeTapsOf(const Node& node, const Shape& in,
                                                     const std::vector<double>& scales,
                                                     const std::vector<double>& sizes);

}  // namespace reprise::ops
