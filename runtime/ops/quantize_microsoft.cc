#include "runtime/ops/quantize_microsoft.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/floats.h"
#include "runtime/ops/matmul.h"
#include "runtime/ops/quantize.h"

namespace reprise::ops {
namespace {

constexpr uint32_t kBytes = TypeBit(DType::kInt8) | TypeBit(DType::kUInt8);
constexpr uint32_t kFloat = TypeBit(DType::kFloat32);

// Scales, zero points and bias of b: one, or one a column.
absl::Status CheckColumns(const InferContext& context, size_t input, int64_t columns,
                          bool one_for_all) {
  if (!context.has_input(input)) return absl::OkStatus();
  const int64_t count = NumElements(context.shape(input));
  if (count == columns || (one_for_all && count == 1)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("input ", input, " has ", count, " elements for ", columns, " columns"));
}

// out = integer product of a and b, scaled, plus bias.
absl::Status ScaledProduct(const KernelContext& context, const TensorView& a, const TensorView& b,
                           const TensorView& a_point, const TensorView& b_point, float a_scale,
                           const TensorView& b_scale, size_t bias) {
  const MutableTensorView& out = context.outputs[0];
  std::vector<int32_t> sums(out.num_elements());
  const TensorView operands[4] = {a, b, a_point, b_point};
  const MutableTensorView product[1] = {{DType::kInt32, out.shape, sums.data()}};
  RETURN_IF_ERROR(MatMulIntegerKernel({context.node, operands, product, context.errors}));
  const std::vector<float> scales = FloatsOf(b_scale);
  const float* shift = HasInput(context, bias) ? context.inputs[bias].as<float>() : nullptr;
  const int64_t columns = b.shape.back();
  for (size_t i = 0; i < sums.size(); ++i) {
    const int64_t column = static_cast<int64_t>(i) % columns;
    const float scale = a_scale * (scales.size() == 1 ? scales[0] : scales[column]);
    out.as<float>()[i] =
        static_cast<float>(sums[i]) * scale + (shift == nullptr ? 0.0f : shift[column]);
  }
  return absl::OkStatus();
}

}  // namespace

// A, B, b_scale, b_zero_point?, bias?
absl::Status DynamicQuantizeMatMulRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kFloat));
  RETURN_IF_ERROR(CheckType(context, 1, kBytes));
  RETURN_IF_ERROR(CheckType(context, 2, kFloat));
  RETURN_IF_ERROR(CheckRank(context, 1, 2));
  if (context.has_input(3)) RETURN_IF_ERROR(CheckSameType(context, 1, 3));
  if (context.has_input(4)) RETURN_IF_ERROR(CheckType(context, 4, kFloat));
  const int64_t columns = context.shape(1)[1];
  RETURN_IF_ERROR(CheckColumns(context, 2, columns, true));
  RETURN_IF_ERROR(CheckColumns(context, 3, columns, true));
  RETURN_IF_ERROR(CheckColumns(context, 4, columns, false));
  ASSIGN_OR_RETURN(Shape shape, MatMulShape(context.shape(0), context.shape(1)));
  context.SetOutput(0, DType::kFloat32, std::move(shape));
  return absl::OkStatus();
}

absl::Status DynamicQuantizeMatMulKernel(const KernelContext& context) {
  const TensorView& a = context.inputs[0];
  std::vector<uint8_t> quantized(a.num_elements());
  float scale = 1;
  uint8_t point = 0;
  const MutableTensorView parts[3] = {{DType::kUInt8, a.shape, quantized.data()},
                                      {DType::kFloat32, {}, &scale},
                                      {DType::kUInt8, {}, &point}};
  RETURN_IF_ERROR(DynamicQuantizeLinearKernel(
      {context.node, context.inputs.subspan(0, 1), parts, context.errors}));
  return ScaledProduct(context, {DType::kUInt8, a.shape, quantized.data()}, context.inputs[1],
                       {DType::kUInt8, {}, &point},
                       HasInput(context, 3) ? context.inputs[3] : TensorView(), scale,
                       context.inputs[2], 4);
}

// A, B, a_scale, b_scale, a_zero_point?, b_zero_point?, bias?
absl::Status MatMulIntegerToFloatRule(InferContext& context) {
  for (size_t i : {0, 1}) RETURN_IF_ERROR(CheckType(context, i, kBytes));
  for (size_t i : {2, 3}) RETURN_IF_ERROR(CheckType(context, i, kFloat));
  RETURN_IF_ERROR(CheckRank(context, 1, 2));
  for (size_t i : {4, 5}) {
    if (context.has_input(i)) RETURN_IF_ERROR(CheckSameType(context, i - 4, i));
  }
  if (context.has_input(6)) RETURN_IF_ERROR(CheckType(context, 6, kFloat));
  const int64_t columns = context.shape(1)[1];
  RETURN_IF_ERROR(CheckColumns(context, 2, 1, true));
  RETURN_IF_ERROR(CheckColumns(context, 3, columns, true));
  RETURN_IF_ERROR(CheckColumns(context, 4, 1, true));
  RETURN_IF_ERROR(CheckColumns(context, 5, columns, true));
  RETURN_IF_ERROR(CheckColumns(context, 6, columns, false));
  ASSIGN_OR_RETURN(Shape shape, MatMulShape(context.shape(0), context.shape(1)));
  context.SetOutput(0, DType::kFloat32, std::move(shape));
  return absl::OkStatus();
}

absl::Status MatMulIntegerToFloatKernel(const KernelContext& context) {
  const auto optional = [&](size_t i) {
    return HasInput(context, i) ? context.inputs[i] : TensorView();
  };
  return ScaledProduct(context, context.inputs[0], context.inputs[1], optional(4), optional(5),
                       *context.inputs[2].as<float>(), context.inputs[3], 6);
}

}  // namespace reprise::ops
