#include "runtime/ops/quantized/integer_linear.h"

#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/quantized/integer_linear_op.h"
#include "runtime/ops/quantized/integer_operands.h"

namespace reprise::ops {
absl::Status IntegerLinearRule(InferContext& context) {
  using enum IntegerLinearOp::Input;
  for (size_t i : {kA, kB}) RETURN_IF_ERROR(CheckType(context, i, kByteTypes));
  for (size_t i : {kAScale, kBScale}) RETURN_IF_ERROR(CheckType(context, i, kFloatType));
  for (size_t i : {kAZero, kBZero}) {
    if (context.has_input(i)) RETURN_IF_ERROR(CheckSameType(context, i - kAZero, i));
  }
  RETURN_IF_ERROR(CheckRank(context, kB, 2));
  RETURN_IF_ERROR(CheckActivation(IntegerLinearOp::From(context.attributes()).activation));
  if (context.rank(kA) == 0) return absl::InvalidArgumentError("a scalar is not a matrix");
  ASSIGN_OR_RETURN(SizeList shape, MatMulShape(context.shape(kA), context.shape(kB)));
  SizeList one_a_row = shape;
  one_a_row.back() = 1;
  const SizeList columns = {shape.back()};
  for (size_t i : {kAScale, kAZero}) RETURN_IF_ERROR(CheckOneOr(context, i, one_a_row));
  for (size_t i : {kBScale, kBZero}) RETURN_IF_ERROR(CheckOneOr(context, i, columns));
  RETURN_IF_ERROR(CheckExactly(context, kBias, columns));
  RETURN_IF_ERROR(CheckExactly(context, kResidual, shape));
  context.SetOutput(0, DType::kFloat32, std::move(shape));
  return absl::OkStatus();
}

absl::Status IntegerLinearKernel(const KernelContext& context) {
  using enum IntegerLinearOp::Input;
  const MutableTensorView& out = context.outputs[0];
  const int64_t count = out.num_elements();
  if (count == 0) return absl::OkStatus();
  const auto input = [&](size_t i) {
    return HasInput(context, i) ? context.inputs[i] : TensorView();
  };
  TensorView a = context.inputs[kA];
  const int64_t columns = out.shape.back(), rows = count / columns;
  a.shape = {rows, context.inputs[kB].shape[0]};
  std::vector<int32_t> sums(count);
  const TensorView operands[4] = {a, context.inputs[kB], input(kAZero), input(kBZero)};
  const MutableTensorView product[1] = {{DType::kInt32, {rows, columns}, sums.data()}};
  RETURN_IF_ERROR(MatMulIntegerKernel({context.node, operands, product, context.errors}));

  const bool scale_a_row = context.inputs[kAScale].num_elements() > 1;
  const bool scale_a_column = context.inputs[kBScale].num_elements() > 1;
  const float* a_scale = context.inputs[kAScale].as<float>();
  const float* b_scale = context.inputs[kBScale].as<float>();
  const float* bias = HasInput(context, kBias) ? context.inputs[kBias].as<float>() : nullptr;
  float* y = out.as<float>();
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t i = row * columns + column;
      const float scale = a_scale[scale_a_row ? row : 0] * b_scale[scale_a_column ? column : 0];
      y[i] = static_cast<float>(sums[i]) * scale;
      if (bias != nullptr) y[i] += bias[column];
    }
  }
  ApplyActivation(IntegerLinearOp::From(context.node.attributes).activation, y, count);
  if (HasInput(context, kResidual)) {
    const float* residual = context.inputs[kResidual].as<float>();
    for (int64_t i = 0; i < count; ++i) y[i] += residual[i];
  }
  return absl::OkStatus();
}

}  // namespace reprise::ops
