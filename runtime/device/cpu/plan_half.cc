// Weights that are stored in half: read as they are, or widened while they are prepared.
#include "runtime/device/cpu/half.h"
#include "runtime/device/cpu/plan.h"
#include "runtime/device/cpu/weight_memory.h"

namespace reprise::cpu {
ParameterExprPtr HalfOf(const ParameterExprPtr& floats) {
  if (floats == nullptr || floats->op() != "Cast" || floats->dtype() != DType::kFloat32) {
    return nullptr;
  }
  const ParameterExprPtr& stored = floats->inputs()[0];
  return IsHalf(stored->dtype()) ? stored : nullptr;
}

absl::StatusOr<Tensor> RunWiden(const CpuTarget& target, const Tensor& half) {
  return Tensor::Make(DType::kFloat32, half.shape(), [&](void* floats) {
    HalfKernelsFor(target.isa, half.dtype())
        .widen(half.data(), static_cast<float*>(floats), half.num_elements());
  });
}

}  // namespace reprise::cpu
