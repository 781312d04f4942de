#include "runtime/graph/shape.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/graph/rank_error.h"

namespace reprise {

absl::StatusOr<int64_t> CheckedNumElements(absl::Span<const int64_t> shape) {
  int64_t product = 1;
  bool overflow = false;
  bool zero = false;
  for (int64_t size : shape) {
    if (size < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("negative size ", size, " in shape ", ShapeToString(shape)));
    }
    if (size == 0) {
      zero = true;
    } else if (__builtin_mul_overflow(product, size, &product)) {
      overflow = true;
    }
  }
  if (zero && (overflow || product > kMostOfNothing)) {
    return absl::ResourceExhaustedError(absl::StrCat("shape ", ShapeToString(shape),
                                                     " has no elements, and its other sizes come ",
                                                     "to more than ", kMostOfNothing));
  }
  if (zero) return 0;
  if (overflow) {
    return absl::ResourceExhaustedError(
        absl::StrCat("shape ", ShapeToString(shape), " has more than 2^63 elements"));
  }
  return product;
}

int64_t NumElements(absl::Span<const int64_t> shape) {
  int64_t product = 1;
  for (int64_t size : shape) product *= size;
  return product;
}

Shape Strides(absl::Span<const int64_t> shape) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

std::string ShapeToString(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::StatusOr<int64_t> NormalizeAxis(int64_t axis, int64_t rank, bool inclusive) {
  const int64_t limit = inclusive ? rank + 1 : rank;
  if (axis < -limit || axis >= limit) {
    return RankError(absl::StrCat("axis ", axis, " is out of range for rank ", rank));
  }
  return axis < 0 ? axis + limit : axis;
}

}  // namespace reprise
