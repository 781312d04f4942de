// Numbers: a tensor while the probe makes it and compares it, its elements as double.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/graph/tensor.h"

namespace reprise {

struct Numbers {
  DType dtype = DType::kUndefined;
  Shape shape;
  std::vector<double> values;
};

// Values outside the dtype's range are clamped to it.
Tensor ToTensor(const Numbers& numbers);
Numbers FromTensor(const Tensor& tensor);

// Copies `source` into the box of `target` that starts at `offset`, which must hold it.
void Paste(const Numbers& source, const Shape& offset, Numbers& target);

// Where the box of `actual` that starts at `offset` and has the shape of `expected` differs, in
// words ("at [0, 3]: 0.5 against 0.25"); nullopt when it does not. Floats may differ by `tolerance`
// of the largest finite |element| of `expected`; NaN equals NaN, infinity itself.
std::optional<std::string> Differ(const Tensor& expected, const Tensor& actual, const Shape& offset,
                                  double tolerance);

// True when some element is a number (integers are; NaN and infinities are not).
bool HasFinite(const Tensor& tensor);

}  // namespace reprise
