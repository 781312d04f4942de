#include "runtime/ops/distances.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise::ops {

int64_t PowerOfDistances(const Attributes& attributes) { return attributes.Int("power", 2); }

absl::Status DistancesRule(InferContext& context) {
  for (const size_t i : {0, 1}) {
    RETURN_IF_ERROR(CheckType(context, i, TypeBit(DType::kFloat32)));
    RETURN_IF_ERROR(CheckRank(context, i, 2));
  }
  if (context.shape(0)[1] != context.shape(1)[0]) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rows of ", context.shape(0)[1], " columns beside vectors of ", context.shape(1)[0]));
  }
  const int64_t power = PowerOfDistances(context.attributes());
  if (power != 1 && power != 2) {
    return absl::InvalidArgumentError(absl::StrCat("power ", power, ", takes 1 or 2"));
  }
  context.SetOutput(0, DType::kFloat32, {context.shape(0)[0], context.shape(1)[1]});
  return absl::OkStatus();
}

absl::Status DistancesKernel(const KernelContext& context) {
  const int64_t rows = context.inputs[0].shape[0], k = context.inputs[0].shape[1];
  const int64_t columns = context.inputs[1].shape[1];
  const float* x = context.inputs[0].as<float>();
  const float* y = context.inputs[1].as<float>();
  float* sums = context.outputs[0].as<float>();
  const bool squared = PowerOfDistances(context.node.attributes) == 2;
  for (int64_t row = 0; row < rows; ++row, x += k, sums += columns) {
    std::fill_n(sums, columns, 0.0f);
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t c = 0; c < columns; ++c) {
        const float difference = x[i] - y[i * columns + c];
        sums[c] += squared ? difference * difference : std::fabs(difference);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace reprise::ops
