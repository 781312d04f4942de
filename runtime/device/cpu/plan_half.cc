// Weights that are stored in half: read as they are, or widened while they are prepared.
#include "runtime/device/cpu/half.h"
#include "runtime/device/cpu/plan.h"
#include "runtime/device/cpu/weight_memory.h"

namespace reprise::cpu {
ParameterExprPtr HalfOf(const ParameterExprPtr& floats) {
  if (floats == nullptr || floats->dtype() != DType::kFloat32) return nullptr;
  const std::string& op = floats->op();
  const std::vector<ParameterExprPtr>& inputs = floats->inputs();
  if (op == "Cast") return IsHalf(inputs[0]->dtype()) ? inputs[0] : nullptr;
  if (op != "Concat" && op != "Transpose" && op != "Reshape" && op != "Identity") return nullptr;
  std::vector<ParameterExprPtr> halves = inputs;
  for (size_t i = 0; i < (op == "Concat" ? inputs.size() : 1); ++i) {
    halves[i] = HalfOf(inputs[i]);
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

}  // namespace reprise::cpu
