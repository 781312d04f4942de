// Numbers: a tensor while it is made, its elements as double.
#pragma once

#include <cmath>
#include <vector>

#include "runtime/graph/tensor.h"

namespace reprise {

struct Numbers {
  DType dtype = DType::kUndefined;
  Shape shape;
  std::vector<double> values;
};

// Returns whether both are the same number; NaN equals NaN.
inline bool SameNumber(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Values outside the dtype's range are clamped to it.
Tensor ToTensor(const Numbers& numbers);
// Returns how many of the first dims hold the same at all of their places, those up to `end` alone.
size_t DimsOfCopies(const Tensor& tensor, size_t end);
// Returns the tensor with one place along each of the first `dims` dims.
Tensor FirstOfCopies(const Tensor& tensor, size_t dims);

}  // namespace reprise
