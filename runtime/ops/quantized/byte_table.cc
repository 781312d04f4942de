#include "runtime/ops/quantized/byte_table.h"

#include "runtime/base/status_macros.h"
#include "runtime/ops/quantized/integer_operands.h"

namespace reprise::ops {

absl::Status ByteTableRule(InferContext& context) {
  for (size_t i : {0, 1}) RETURN_IF_ERROR(CheckType(context, i, kByteTypes));
  if (context.shape(1) != SizeList{kByteValues}) {
    return OperandMismatch(1, context.shape(1), ShapeToString(SizeList{kByteValues}));
  }
  context.SetOutput(0, context.dtype(1), context.shape(0));
  return absl::OkStatus();
}

absl::Status ByteTableKernel(const KernelContext& context) {
  const MutableTensorView& out = context.outputs[0];
  const auto* const x = static_cast<const uint8_t*>(context.inputs[0].data);
  const auto* const table = static_cast<const uint8_t*>(context.inputs[1].data);
  auto* const y = static_cast<uint8_t*>(out.data);
  for (int64_t i = 0; i < out.num_elements(); ++i) y[i] = table[x[i]];
  return absl::OkStatus();
}

}  // namespace reprise::ops
