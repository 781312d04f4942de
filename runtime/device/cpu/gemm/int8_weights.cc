#include "runtime/device/cpu/gemm/int8_weights.h"

#include "runtime/ops/weights/quantized_weights.h"

namespace reprise::cpu {

std::optional<Int8Weights> SplitInt8(const ParameterExprPtr& weights, int64_t axis) {
  const std::optional<ops::QuantizedWeights> parts = ops::SplitQuantized(weights, axis);
  if (!parts.has_value() || parts->values->dtype() != DType::kInt8 || parts->points != nullptr) {
    return std::nullopt;
  }
  return Int8Weights{parts->values, parts->scales};
}

}  // namespace reprise::cpu
