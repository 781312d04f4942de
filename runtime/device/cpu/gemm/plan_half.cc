// Weights that are stored in half: read as they are, or widened while they are prepared.
#include "runtime/device/cpu/gemm/gemm_plans.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/device/cpu/simd/half.h"
#include "runtime/device/cpu/simd/weight_memory.h"
#include "runtime/graph/parameter_expr.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/weights/narrowed_weights.h"

namespace reprise::cpu {
ParameterExprPtr HalfOf(const ParameterExprPtr& floats, bool narrowed) {
  if (floats == nullptr || floats->dtype() != DType::kFloat32) return nullptr;
  const std::string& op = floats->op();
  const std::vector<ParameterExprPtr>& inputs = floats->inputs();
  if (op == CastOp::kName) {
    if (!IsHalf(inputs[0]->dtype())) return nullptr;
    const bool stored = !ops::IsNarrowing(inputs[0]->op(), inputs[0]->attributes());
    return stored || narrowed ? inputs[0] : nullptr;
  }
  const bool moves = op == TransposeOp::kName || op == ReshapeOp::kName || op == SliceOp::kName ||
                     op == IdentityOp::kName;
  if (op != ConcatOp::kName && !moves) return nullptr;
  std::vector<ParameterExprPtr> halves = inputs;
  for (size_t i = 0; i < (op == ConcatOp::kName ? inputs.size() : 1); ++i) {
    halves[i] = HalfOf(inputs[i], narrowed);
    if (halves[i] == nullptr || halves[i]->dtype() != halves[0]->dtype()) return nullptr;
  }
  const DType dtype = halves[0]->dtype();
  return ParameterExpr::Apply(op, floats->attributes(), std::move(halves), dtype, floats->shape());
}

absl::StatusOr<Tensor> RunWiden(const CpuTarget& target, const Tensor& half) {
  return Tensor::Make(DType::kFloat32, half.shape(), [&](void* floats) {
    HalfKernelsFor(target.isa, half.dtype())
        .widen(half.data(), static_cast<float*>(floats), half.num_elements());
  });
}

absl::StatusOr<Tensor> RunNarrow(const CpuTarget& target, const Tensor& floats, DType half) {
  return Tensor::Make(half, floats.shape(), [&](void* halves) {
    HalfKernelsFor(target.isa, half)
        .narrow(static_cast<const float*>(floats.data()), static_cast<uint16_t*>(halves),
                floats.num_elements());
  });
}

}  // namespace reprise::cpu
