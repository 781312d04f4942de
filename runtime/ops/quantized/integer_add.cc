#include "runtime/ops/quantized/integer_add.h"

#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/ops/kit/typed.h"
#include "runtime/ops/quantized/byte_op.h"
#include "runtime/ops/quantized/integer_operands.h"
#include "runtime/ops/quantized/quantize.h"
#include "runtime/ops/windows/conv.h"

namespace reprise::ops {
absl::Status IntegerAddRule(InferContext& context) {
  using enum IntegerAddOp::Input;
  for (size_t i : {kA, kB, kYZero}) RETURN_IF_ERROR(CheckType(context, i, kByteTypes));
  for (size_t i : {kAScale, kBScale, kYScale}) RETURN_IF_ERROR(CheckType(context, i, kFloatType));
  for (size_t i : {kA, kB}) RETURN_IF_ERROR(CheckSameType(context, i, i + kAZero));
  for (size_t i = kAScale; i <= kYZero; ++i) RETURN_IF_ERROR(CheckOne(context, i));
  RETURN_IF_ERROR(CheckConvActivation(IntegerAddOp::From(context.attributes()).activation));
  if (context.shape(kA) != context.shape(kB)) {
    return OperandMismatch(kB, context.shape(kB), ShapeToString(context.shape(kA)));
  }
  context.SetOutput(0, context.dtype(kYZero), context.shape(kA));
  return absl::OkStatus();
}

absl::Status IntegerAddKernel(const KernelContext& context) {
  using enum IntegerAddOp::Input;
  const MutableTensorView& out = context.outputs[0];
  std::vector<float> sums(out.num_elements());
  for (const size_t side : {kA, kB}) {
    const TensorView& in = context.inputs[side];
    const float scale = *context.inputs[side + kAScale].as<float>();
    const int64_t zero = Int64sOf(context, side + kAZero)[0];
    (void)Dispatch(TypeList<int8_t, uint8_t>{}, in.dtype, [&]<typename T>() {
      for (size_t i = 0; i < sums.size(); ++i) {
        const float value = static_cast<float>(int64_t{in.as<T>()[i]} - zero) * scale;
        sums[i] = side == kA ? value : sums[i] + value;
      }
    });
  }
  ApplyConvActivation(context.node.attributes, sums.data(), static_cast<int64_t>(sums.size()));
  QuantizeAll(sums.data(), *context.inputs[kYScale].as<float>(), Int64sOf(context, kYZero)[0], out);
  return absl::OkStatus();
}

}  // namespace reprise::ops
