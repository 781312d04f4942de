#include "runtime/ops/products/det.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/work_watch.h"
#include "runtime/graph/rank_error.h"
#include "runtime/ops/kit/typed.h"

namespace reprise::ops {
double Determinant(double* m, int64_t n) {
  double result = 1;
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t row = k + 1; row < n; ++row) {
      if (std::abs(m[row * n + k]) > std::abs(m[pivot * n + k])) pivot = row;
    }
    if (pivot != k) {
      std::swap_ranges(m + k * n, m + (k + 1) * n, m + pivot * n);
      result = -result;
    }
    const double* const top = m + k * n;
    result *= top[k];
    // A column of zeros ends it; NaN runs through.
    if (top[k] == 0) return result;
    for (int64_t row = k + 1; row < n; ++row) {
      WatchWork(n - k);
      double* const from = m + row * n;
      const double factor = from[k] / top[k];
      for (int64_t column = k + 1; column < n; ++column) from[column] -= factor * top[column];
    }
  }
  return result;
}

absl::Status DetRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kFloats));
  SizeList shape = context.shape(0);
  if (shape.size() < 2) {
    return RankError(absl::StrCat("an operand of rank ", shape.size(), " holds no matrices"));
  }
  if (shape[shape.size() - 1] != shape[shape.size() - 2]) {
    return absl::InvalidArgumentError(
        absl::StrCat("the matrices of an operand ", ShapeToString(shape), " are not square"));
  }
  shape.resize(shape.size() - 2);
  context.SetOutput(0, context.dtype(0), std::move(shape));
  return absl::OkStatus();
}

absl::Status DetKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const MutableTensorView& out = context.outputs[0];
  const int64_t n = in.shape.back();
  std::vector<double> matrix(n * n);
  return Dispatch(FloatList{}, in.dtype, [&]<typename T>() {
    for (int64_t i = 0; i < out.num_elements(); ++i) {
      const T* const from = in.as<T>() + i * n * n;
      std::transform(from, from + n * n, matrix.begin(),
                     [](T x) { return static_cast<double>(static_cast<Compute<T>>(x)); });
      out.as<T>()[i] = static_cast<T>(static_cast<Compute<T>>(Determinant(matrix.data(), n)));
    }
  });
}

}  // namespace reprise::ops
