#include "runtime/ops/weights/quantized_weights.h"

#include <algorithm>

#include "runtime/graph/tensor.h"

namespace reprise::ops {
namespace {

bool IsMatrix(const ParameterExprPtr& expr, DType dtype) {
  return expr != nullptr && expr->dtype() == dtype && expr->shape().size() == 2;
}

bool IsByteMatrix(const ParameterExprPtr& expr) {
  return IsMatrix(expr, DType::kInt8) || IsMatrix(expr, DType::kUInt8);
}

// Returns `factors` as [columns] or [1], where it has one element for each column of `shape`, or
// one for all.
ParameterExprPtr AsColumns(const ParameterExprPtr& factors, const Shape& shape, int64_t axis) {
  if (factors == nullptr || factors->shape().size() > 2) return nullptr;
  const int64_t elements = NumElements(factors->shape());
  if (elements != 1) {
    Shape aligned = {1, 1};
    std::copy(factors->shape().rbegin(), factors->shape().rend(), aligned.rbegin());
    Shape wanted = {1, 1};
    wanted[axis] = shape[axis];
    if (aligned != wanted) return nullptr;
  }
  if (factors->shape().size() == 1) return factors;
  if (factors->is_constant()) {
    return ParameterExpr::Constant(factors->constant().Reshaped({elements}));
  }
  const Tensor flat = Tensor::Make(DType::kInt64, {1},
                                   [&](void* data) { *static_cast<int64_t*>(data) = elements; });
  return ParameterExpr::Apply("Reshape", {}, {factors, ParameterExpr::Constant(flat)},
                              factors->dtype(), {elements});
}

bool AllZero(const ParameterExprPtr& points) {
  if (points == nullptr) return true;
  if (!points->is_constant()) return false;
  const absl::StatusOr<std::vector<int64_t>> values = points->constant().ToInt64s();
  return values.ok() &&
         std::all_of(values->begin(), values->end(), [](int64_t value) { return value == 0; });
}

std::optional<QuantizedWeights> SplitDequantized(const ParameterExpr& expr, int64_t axis) {
  const auto& inputs = expr.inputs();
  if (inputs.size() < 2 || !IsByteMatrix(inputs[0]) || inputs[1] == nullptr) return std::nullopt;
  if (expr.attributes().Int("block_size", 0) != 0) return std::nullopt;
  QuantizedWeights weights = {inputs[0], inputs[1], inputs.size() > 2 ? inputs[2] : nullptr};
  if (AllZero(weights.points)) weights.points = nullptr;
  if (weights.scales->dtype() != DType::kFloat32 || weights.scales->shape().size() > 1) {
    return std::nullopt;
  }
  if (NumElements(weights.scales->shape()) != 1) {
    const auto scaled = NormalizeAxis(expr.attributes().Int("axis", 1), 2);
    const bool fits = scaled.ok() && *scaled == axis &&
                      weights.scales->shape()[0] == expr.shape()[axis] &&
                      (weights.points == nullptr || weights.points->shape().size() == 1);
    return fits ? std::make_optional(weights) : std::nullopt;
  }
  weights.scales = AsColumns(weights.scales, expr.shape(), axis);
  if (weights.points != nullptr) weights.points = AsColumns(weights.points, expr.shape(), axis);
  return weights;
}

std::optional<QuantizedWeights> SplitProduct(const ParameterExpr& expr, int64_t axis) {
  for (const size_t i : {0, 1}) {
    const ParameterExprPtr& factor = expr.inputs()[i];
    if (!IsMatrix(factor, DType::kFloat32) || factor->shape() != expr.shape()) continue;
    std::optional<QuantizedWeights> weights = SplitQuantized(factor, axis);
    if (!weights.has_value()) continue;
    const ParameterExprPtr scales = AsColumns(expr.inputs()[1 - i], expr.shape(), axis);
    if (scales == nullptr || scales->dtype() != DType::kFloat32) continue;
    if (weights->scales == nullptr) {
      weights->scales = scales;
    } else {
      const Shape& shape = scales->shape()[0] == 1 ? weights->scales->shape() : scales->shape();
      weights->scales =
          ParameterExpr::Apply("Mul", {}, {weights->scales, scales}, DType::kFloat32, shape);
    }
    return weights;
  }
  return std::nullopt;
}

std::optional<QuantizedWeights> SplitConcatenated(const ParameterExpr& expr, int64_t axis) {
  const auto joined = NormalizeAxis(expr.attributes().Int("axis", 0), 2);
  if (!joined.ok() || *joined != axis) return std::nullopt;
  std::vector<ParameterExprPtr> values, scales, points;
  for (const ParameterExprPtr& input : expr.inputs()) {
    std::optional<QuantizedWeights> part = SplitQuantized(input, axis);
    if (!part.has_value() || part->scales == nullptr) return std::nullopt;
    const Shape columns = {input->shape()[axis]};
    if (part->scales->shape() != columns) return std::nullopt;
    if (part->points != nullptr && part->points->shape() != columns) return std::nullopt;
    const bool alike = values.empty() || (part->values->dtype() == values[0]->dtype() &&
                                          (part->points == nullptr) == points.empty());
    if (!alike) return std::nullopt;
    values.push_back(std::move(part->values));
    scales.push_back(std::move(part->scales));
    if (part->points != nullptr) points.push_back(std::move(part->points));
  }
  const DType dtype = values[0]->dtype();
  const auto joined_columns = [&](std::vector<ParameterExprPtr> parts, DType type) {
    return ParameterExpr::Apply("Concat", {{"axis", int64_t{0}}}, std::move(parts), type,
                                {expr.shape()[axis]});
  };
  QuantizedWeights weights;
  weights.values =
      ParameterExpr::Apply("Concat", {{"axis", axis}}, std::move(values), dtype, expr.shape());
  weights.scales = joined_columns(std::move(scales), DType::kFloat32);
  if (!points.empty()) weights.points = joined_columns(std::move(points), dtype);
  return weights;
}

std::optional<QuantizedWeights> SplitTransposed(const ParameterExpr& expr, int64_t axis) {
  const ParameterExprPtr& input = expr.inputs()[0];
  const std::vector<int64_t> order = expr.attributes().Ints("perm", {1, 0});
  if (!IsMatrix(input, DType::kFloat32) || order != std::vector<int64_t>{1, 0}) {
    return std::nullopt;
  }
  std::optional<QuantizedWeights> weights = SplitQuantized(input, 1 - axis);
  if (!weights.has_value()) return std::nullopt;
  const DType dtype = weights->values->dtype();
  weights->values =
      ParameterExpr::Apply("Transpose", expr.attributes(), {weights->values}, dtype, expr.shape());
  return weights;
}

}  // namespace

std::optional<QuantizedWeights> SplitQuantized(const ParameterExprPtr& weights, int64_t axis) {
  if (!IsMatrix(weights, DType::kFloat32)) return std::nullopt;
  const std::string& op = weights->op();
  const auto& inputs = weights->inputs();
  if (op == "Cast" && IsByteMatrix(inputs[0])) return QuantizedWeights{inputs[0]};
  if (op == "DequantizeLinear") return SplitDequantized(*weights, axis);
  if (op == "Mul") return SplitProduct(*weights, axis);
  if (op == "Concat") return SplitConcatenated(*weights, axis);
  if (op == "Transpose") return SplitTransposed(*weights, axis);
  if (op == "Identity") return SplitQuantized(inputs[0], axis);
  return std::nullopt;
}

}  // namespace reprise::ops
