// Difference: by how much an answer is off.
#pragma once

#include <vector>

#include "runtime/graph/tensor.h"

namespace reprise {

struct Difference {
  // The largest distance of two elements, divided by the largest number of the right output;
  // infinite where shapes, or places of what is no number, differ, and where whole numbers do.
  double value = 0;
  size_t output = 0;  // that has it
};

// `answer` and `right` have equally many outputs.
Difference DifferenceOf(const std::vector<Tensor>& answer, const std::vector<Tensor>& right);

}  // namespace reprise
