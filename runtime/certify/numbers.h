// Numbers: a tensor while the probe makes it and compares it, its elements as double.
#pragma once

#include <cmath>
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

// Returns whether both are the same number; NaN equals NaN.
inline bool SameNumber(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Values outside the dtype's range are clamped to it.
Tensor ToTensor(const Numbers& numbers);
Numbers FromTensor(const Tensor& tensor);

// Copies `source` into the box of `target` that starts at `offset`, which must hold it.
void Paste(const Numbers& source, const Shape& offset, Numbers& target);

// Where the box of `actual` that starts at `offset` and has the shape of `expected` differs, in
// words ("at [0, 3]: 0.5 against 0.25"); nullopt when it does not. Floats may differ by `tolerance`
// of the largest finite |element| of `expected`, or of `usual` where that is larger; NaN equals
// NaN, infinity itself.
std::optional<std::string> Differ(const Tensor& expected, const Tensor& actual, const Shape& offset,
                                  double tolerance, double usual = 0);

// Returns how many of the first dims hold the same at all of their places, those up to `end` alone.
size_t DimsOfCopies(const Tensor& tensor, size_t end);
// Returns the tensor with one place along each of the first `dims` dims.
Tensor FirstOfCopies(const Tensor& tensor, size_t dims);

// Returns the largest finite |element|; 0 where there is none.
double LargestOf(const Tensor& tensor);

// True where what differs is too little to be told from roundings by `expected` alone: it has few
// elements, and none is off by more than a hundredth of the largest.
bool MayBeRounding(const Tensor& expected, const Tensor& actual, const Shape& offset);

// How large such an output usually is: the median of LargestOf() of some of them, 0 of none. One of
// few elements, a score say, may happen to be next to 0, and is then no measure of the roundings in
// the sums that it comes from.
double UsualSize(std::vector<double> sizes);

// True when some element is a number (integers are; NaN and infinities are not).
bool HasFinite(const Tensor& tensor);

}  // namespace reprise
