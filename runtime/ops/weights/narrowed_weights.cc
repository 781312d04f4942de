#include "runtime/ops/weights/narrowed_weights.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/ops/kit/onnx_types.h"

namespace reprise::ops {
namespace {

constexpr int64_t kWorthIt = 1 << 14;       // elements
constexpr char kExact[] = "reprise.exact";  // no attribute of a file

// Returns whether each of `count` floats, which may lie at any address, is one of bfloat16.
bool AreBFloat16(const char* floats, int64_t count) {
  constexpr uint64_t kLost = 0x0000FFFF0000FFFF;
  uint64_t bits = 0;
  const auto add = [&](const char* from, size_t bytes) {
    uint64_t words = 0;
    std::memcpy(&words, from, bytes);
    bits |= words;
  };
  for (; count >= 2; count -= 2, floats += sizeof(uint64_t)) add(floats, sizeof(uint64_t));
  if (count > 0) add(floats, sizeof(float));
  return (bits & kLost) == 0;
}

// Returns the same for float16. They must be normal numbers that lose no mantissa bit in float16.
bool AreFloat16(const char* floats, int64_t count) {
  constexpr uint32_t kLost = (1 << 13) - 1;
  constexpr uint32_t kLeast = 113u << 23, kMost = (142u << 23 | 0x7FFFFF);  // 2^-14, below 2^16
  for (int64_t i = 0; i < count; ++i) {
    uint32_t word;
    std::memcpy(&word, floats + i * int64_t{sizeof(word)}, sizeof(word));
    const uint32_t magnitude = word & 0x7FFFFFFF;
    const bool normal = (word & kLost) == 0 && magnitude >= kLeast && magnitude <= kMost;
    if (normal || magnitude == 0) continue;
    float value;
    std::memcpy(&value, &word, sizeof(value));
    const float back = HalfToFloat(FloatToHalf(value));
    if (std::memcmp(&back, &value, sizeof(value)) != 0) return false;
  }
  return true;
}

template <class AreHalves>
bool Holds(const Tensor& tensor, AreHalves are_halves) {
  constexpr int64_t kAtOnce = 1024;
  const auto* floats = static_cast<const char*>(tensor.data());
  for (int64_t i = 0; i < tensor.num_elements(); i += kAtOnce) {
    const int64_t count = std::min(kAtOnce, tensor.num_elements() - i);
    if (!are_halves(floats + i * int64_t{sizeof(float)}, count)) return false;
  }
  return true;
}

}  // namespace

DType HalfThatHolds(const Tensor& tensor) {
  if (tensor.dtype() != DType::kFloat32 || tensor.shape().size() != 2 ||
      tensor.num_elements() < kWorthIt) {
    return DType::kUndefined;
  }
  if (Holds(tensor, AreBFloat16)) return DType::kBFloat16;
  if (Holds(tensor, AreFloat16)) return DType::kFloat16;
  return DType::kUndefined;
}

ParameterExprPtr Narrowed(const ParameterExprPtr& floats, DType half) {
  const Attributes to_half = {{kExact, int64_t{1}}, {"to", OnnxNumber(half)}};
  const ParameterExprPtr halves =
      ParameterExpr::Apply("Cast", to_half, {floats}, half, floats->shape());
  return ParameterExpr::Apply("Cast", {{"to", OnnxNumber(DType::kFloat32)}}, {halves},
                              DType::kFloat32, floats->shape());
}

bool IsNarrowing(absl::string_view op, const Attributes& attributes) {
  return op == "Cast" && attributes.Int(kExact, 0) != 0;
}

ParameterExprPtr WithoutNarrowing(const ParameterExprPtr& expression) {
  if (expression == nullptr || expression->inputs().empty()) return expression;
  const ParameterExprPtr& first = expression->inputs()[0];
  if (expression->op() == "Cast" && expression->dtype() == DType::kFloat32 &&
      IsNarrowing(first->op(), first->attributes())) {
    return first->inputs()[0];
  }
  std::vector<ParameterExprPtr> inputs = expression->inputs();
  bool changed = false;
  for (ParameterExprPtr& input : inputs) {
    ParameterExprPtr plain = WithoutNarrowing(input);
    changed |= plain != input;
    input = std::move(plain);
  }
  if (!changed) return expression;
  return ParameterExpr::Apply(expression->op(), expression->attributes(), std::move(inputs),
                              expression->dtype(), expression->shape());
}

}  // namespace reprise::ops
