#include "runtime/ops/classical/distances.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/base/saturating.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/work_watch.h"

namespace reprise::ops {

int64_t PowerOfDistances(const Attributes& attributes) { return attributes.Int("power", 2); }

absl::Status DistancesRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, TypeBit(DType::kFloat32) | TypeBit(DType::kFloat64)));
  RETURN_IF_ERROR(CheckSameType(context, 0, 1));
  for (const size_t i : {0, 1}) RETURN_IF_ERROR(CheckRank(context, i, 2));
  const Size columns = context.shape(0)[1], vectors = context.shape(1)[0];
  if (columns != vectors && columns != 1 && vectors != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("rows of ", columns, " columns with vectors of ", vectors));
  }
  const int64_t power = PowerOfDistances(context.attributes());
  if (power < 1 || power > kMostPower) {
    return absl::InvalidArgumentError(
        absl::StrCat("power ", power, ", takes from 1 to ", kMostPower));
  }
  context.SetOutput(0, context.dtype(0), {context.shape(0)[0], context.shape(1)[1]});
  return absl::OkStatus();
}

namespace {

template <typename T>
void AddDistances(const KernelContext& context) {
  const Shape& of_x = context.inputs[0].shape;
  const Shape& of_y = context.inputs[1].shape;
  const int64_t rows = of_x[0], columns = of_y[1];
  // None where either side has none.
  const int64_t k = of_x[1] == 1 ? of_y[0] : of_x[1];
  const int64_t x_step = of_x[1] == 1 ? 0 : 1, y_step = of_y[0] == 1 ? 0 : columns;
  const int64_t power = PowerOfDistances(context.node.attributes);
  const T* x = context.inputs[0].as<T>();
  const T* y = context.inputs[1].as<T>();
  T* sums = context.outputs[0].as<T>();
  for (int64_t row = 0; row < rows; ++row, x += of_x[1], sums += columns) {
    std::fill_n(sums, columns, T{0});
    for (int64_t i = 0; i < k; ++i) {
      WatchWork(SaturatingProduct(columns, std::max<int64_t>(power, 1)));
      for (int64_t c = 0; c < columns; ++c) {
        const T difference = std::abs(x[i * x_step] - y[i * y_step + c]);
        T term = difference;
        for (int64_t p = 1; p < power; ++p) term *= difference;
        sums[c] += term;
      }
    }
  }
}

}  // namespace

absl::Status DistancesKernel(const KernelContext& context) {
  if (context.inputs[0].dtype == DType::kFloat64) {
    AddDistances<double>(context);
  } else {
    AddDistances<float>(context);
  }
  return absl::OkStatus();
}

}  // namespace reprise::ops
