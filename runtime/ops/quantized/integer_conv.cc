#include "runtime/ops/quantized/integer_conv.h"

#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/ops/kit/typed.h"
#include "runtime/ops/quantized/integer_conv_op.h"
#include "runtime/ops/quantized/integer_operands.h"
#include "runtime/ops/quantized/quantize.h"
#include "runtime/ops/windows/conv.h"

namespace reprise::ops {
namespace {

// Returns elements of input `i` less its zero points, input `points`; where there are several
// points, each holds for `inner` neighbouring elements.
std::vector<double> Centered(const KernelContext& context, size_t i, size_t points, int64_t inner) {
  const std::vector<int64_t> zeros = Int64sOf(context, points);
  const TensorView& in = context.inputs[i];
  std::vector<double> values(in.num_elements());
  (void)Dispatch(TypeList<int8_t, uint8_t>{}, in.dtype, [&]<typename T>() {
    for (size_t at = 0; at < values.size(); ++at) {
      const int64_t zero = zeros.empty()       ? 0
                           : zeros.size() == 1 ? zeros[0]
                                               : zeros[at / static_cast<size_t>(inner)];
      values[at] = static_cast<double>(int64_t{in.as<T>()[at]} - zero);
    }
  });
  return values;
}

}  // namespace

absl::Status IntegerConvRule(InferContext& context) {
  using enum IntegerConvOp::Input;
  for (size_t i : {kX, kWeight}) RETURN_IF_ERROR(CheckType(context, i, kByteTypes));
  for (size_t i : {kXScale, kWeightScale}) RETURN_IF_ERROR(CheckType(context, i, kFloatType));
  for (size_t i : {kXZero, kWeightZero}) {
    if (context.has_input(i)) RETURN_IF_ERROR(CheckSameType(context, i - kXZero, i));
  }
  RETURN_IF_ERROR(CheckConvActivation(IntegerConvOp::From(context.attributes()).activation));
  ASSIGN_OR_RETURN(const ConvLayout layout, ConvLayoutOf(context.attributes()));
  RETURN_IF_ERROR(CheckConvRanks(context));
  const SizeList& x = context.shape(kX);
  ASSIGN_OR_RETURN(SizeList shape, ConvShape(context.node(), layout.x_last ? ChannelsFirst(x) : x,
                                             context.shape(kWeight)));
  const SizeList maps = {shape[1]};
  if (layout.y_last) shape = ChannelsLast(shape);
  for (size_t i : {kXScale, kXZero}) RETURN_IF_ERROR(CheckOne(context, i));
  for (size_t i : {kWeightScale, kWeightZero}) RETURN_IF_ERROR(CheckOneOr(context, i, maps));
  RETURN_IF_ERROR(CheckExactly(context, kBias, maps));
  RETURN_IF_ERROR(CheckExactly(context, kResidual, shape));
  ASSIGN_OR_RETURN(const DType dtype, ResultType(context, kYScale));
  context.SetOutput(0, dtype, std::move(shape));
  return absl::OkStatus();
}

absl::Status IntegerConvKernel(const KernelContext& context) {
  using enum IntegerConvOp::Input;
  const MutableTensorView& out = context.outputs[0];
  const int64_t count = out.num_elements();
  if (count == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const ConvLayout layout, ConvLayoutOf(context.node.attributes));
  const Shape& weight = context.inputs[kWeight].shape;
  const Shape result = layout.y_last ? ChannelsFirst(out.shape) : out.shape;
  const int64_t batch = result[0], maps = weight[0], plane = count / batch / maps;
  // Doubles hold every sum.
  std::vector<double> x = Centered(context, kX, kXZero, 1);
  Shape operand = context.inputs[kX].shape;
  if (layout.x_last) {
    const int64_t channels = operand.back();
    operand = ChannelsFirst(operand);
    x = TurnedPlanes(x.data(), batch, static_cast<int64_t>(x.size()) / batch / channels, channels);
  }
  const std::vector<double> w = Centered(context, kWeight, kWeightZero, NumElements(weight) / maps);
  std::vector<double> sums(count);
  const TensorView operands[2] = {{DType::kFloat64, operand, x.data()},
                                  {DType::kFloat64, weight, w.data()}};
  const MutableTensorView product[1] = {{DType::kFloat64, result, sums.data()}};
  RETURN_IF_ERROR(ConvKernel({context.node, operands, product, context.errors}));
  if (layout.y_last) sums = TurnedPlanes(sums.data(), batch, maps, plane);

  const float x_scale = *context.inputs[kXScale].as<float>();
  const float* w_scale = context.inputs[kWeightScale].as<float>();
  const bool scale_a_map = context.inputs[kWeightScale].num_elements() > 1;
  const float* bias = HasInput(context, kBias) ? context.inputs[kBias].as<float>() : nullptr;
  const float* residual =
      HasInput(context, kResidual) ? context.inputs[kResidual].as<float>() : nullptr;
  const bool quantised = HasInput(context, kYScale);
  std::vector<float> floats(quantised ? count : 0);
  float* y = quantised ? floats.data() : out.as<float>();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t map = layout.y_last ? i % maps : i / plane % maps;
    const auto sum = static_cast<int32_t>(static_cast<int64_t>(sums[i]));
    y[i] = static_cast<float>(sum) * (x_scale * w_scale[scale_a_map ? map : 0]);
    if (bias != nullptr) y[i] += bias[map];
    if (residual != nullptr) y[i] += residual[i];
  }
  ApplyConvActivation(context.node.attributes, y, count);
  if (quantised) {
    QuantizeAll(y, *context.inputs[kYScale].as<float>(), Int64sOf(context, kYScale + 1)[0], out);
  }
  return absl::OkStatus();
}

}  // namespace reprise::ops
