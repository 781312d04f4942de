// Tensors as numbers, and the largest of them.
#pragma once

#include <algorithm>
#include <cmath>

#include "runtime/certify/numbers.h"

namespace reprise {

inline Numbers FromTensor(const Tensor& tensor) {
  return {tensor.dtype(), tensor.shape(), tensor.ToDoubles()};
}

// Returns the largest finite |element|; 0 where there is none.
inline double LargestOf(const Tensor& tensor) {
  double largest = 0;
  for (const double value : tensor.ToDoubles()) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

}  // namespace reprise
