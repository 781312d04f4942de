// SizeMeasure: how many elements requests, bindings and buckets are, by the sizes of their axes.
//
// Axes of one input multiply: rows and length, height and width. Inputs of different axes add up: a
// question and a passage, a text and its translation, the lists of a recommender. An input whose
// axes are all among the axes of another one does not count.
//
// Numbers only. Threads: constant after construction.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace reprise {

class SizeMeasure {
 public:
  // All axes multiply.
  SizeMeasure() = default;
  // Takes `inputs`: of each input the indices of its axes, below `num_axes`, in any order. An axis
  // that no input has is one of its own.
  SizeMeasure(size_t num_axes, const std::vector<std::vector<size_t>>& inputs);

  // Returns the elements at `sizes`, by index; a size below 1 counts as 1. The largest integer
  // where they would exceed it.
  int64_t Elements(absl::Span<const int64_t> sizes) const;

  // Returns the measure of the axes at these indices alone, in their order: the others have size 1.
  SizeMeasure Of(absl::Span<const size_t> positions) const;

  friend bool operator==(const SizeMeasure&, const SizeMeasure&) = default;

 private:
  // Ascending indices each, none within another; empty: all axes multiply.
  std::vector<std::vector<size_t>> inputs_;
};

}  // namespace reprise
