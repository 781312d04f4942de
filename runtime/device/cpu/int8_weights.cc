#include "runtime/device/cpu/int8_weights.h"

#include <algorithm>

#include "runtime/graph/tensor.h"
#include "runtime/ops/op.h"

namespace reprise::cpu {
namespace {

bool IsMatrix(const ParameterExprPtr& expr, DType dtype) {
  return expr != nullptr && expr->dtype() == dtype && expr->shape().size() == 2;
}

// `scales` as [columns] or [1], where it has one element for each column of `shape`, or one for
// all.
ParameterExprPtr AsColumns(const ParameterExprPtr& scales, const Shape& shape, int64_t axis) {
  if (scales == nullptr || scales->dtype() != DType::kFloat32 || scales->shape().size() > 2) {
    return nullptr;
  }
  const int64_t elements = NumElements(scales->shape());
  if (elements != 1) {
    Shape aligned = {1, 1};
    std::copy(scales->shape().rbegin(), scales->shape().rend(), aligned.rbegin());
    Shape wanted = {1, 1};
    wanted[axis] = shape[axis];
    if (aligned != wanted) return nullptr;
  }
  if (scales->shape().size() == 1) return scales;
  const Tensor flat = Tensor::Make(DType::kInt64, {1},
                                   [&](void* data) { *static_cast<int64_t*>(data) = elements; });
  return ParameterExpr::Apply("Reshape", {}, {scales, ParameterExpr::Constant(flat)},
                              DType::kFloat32, {elements});
}

bool AllZero(const ParameterExprPtr& points) {
  if (points == nullptr) return true;
  if (!points->is_constant()) return false;
  const absl::StatusOr<std::vector<int64_t>> values = points->constant().ToInt64s();
  return values.ok() &&
         std::all_of(values->begin(), values->end(), [](int64_t value) { return value == 0; });
}

std::optional<Int8Weights> SplitDequantized(const ParameterExpr& expr, int64_t axis) {
  const auto& inputs = expr.inputs();
  if (inputs.size() < 2 || !IsMatrix(inputs[0], DType::kInt8) || inputs[1] == nullptr) {
    return std::nullopt;
  }
  if (expr.attributes().Int("block_size", 0) != 0) return std::nullopt;
  if (inputs.size() > 2 && !AllZero(inputs[2])) return std::nullopt;
  const ParameterExprPtr& scales = inputs[1];
  if (scales->dtype() != DType::kFloat32 || scales->shape().size() > 1) return std::nullopt;
  if (NumElements(scales->shape()) != 1) {
    const auto scaled = NormalizeAxis(expr.attributes().Int("axis", 1), 2);
    if (!scaled.ok() || *scaled != axis || scales->shape()[0] != expr.shape()[axis]) {
      return std::nullopt;
    }
    return Int8Weights{inputs[0], scales};
  }
  return Int8Weights{inputs[0], AsColumns(scales, expr.shape(), axis)};
}

std::optional<Int8Weights> SplitProduct(const ParameterExpr& expr, int64_t axis) {
  for (const size_t i : {0, 1}) {
    const ParameterExprPtr& factor = expr.inputs()[i];
    if (!IsMatrix(factor, DType::kFloat32) || factor->shape() != expr.shape()) continue;
    std::optional<Int8Weights> weights = SplitInt8(factor, axis);
    if (!weights.has_value()) continue;
    const ParameterExprPtr scales = AsColumns(expr.inputs()[1 - i], expr.shape(), axis);
    if (scales == nullptr) continue;
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

std::optional<Int8Weights> SplitConcatenated(const ParameterExpr& expr, int64_t axis) {
  const auto joined = NormalizeAxis(expr.attributes().Int("axis", 0), 2);
  if (!joined.ok() || *joined != axis) return std::nullopt;
  std::vector<ParameterExprPtr> values, scales;
  for (const ParameterExprPtr& input : expr.inputs()) {
    std::optional<Int8Weights> part = SplitInt8(input, axis);
    if (!part.has_value() || part->scales == nullptr) return std::nullopt;
    if (part->scales->shape()[0] != input->shape()[axis]) return std::nullopt;
    values.push_back(std::move(part->values));
    scales.push_back(std::move(part->scales));
  }
  return Int8Weights{ParameterExpr::Apply("Concat", {{"axis", axis}}, std::move(values),
                                          DType::kInt8, expr.shape()),
                     ParameterExpr::Apply("Concat", {{"axis", int64_t{0}}}, std::move(scales),
                                          DType::kFloat32, {expr.shape()[axis]})};
}

std::optional<Int8Weights> SplitTransposed(const ParameterExpr& expr, int64_t axis) {
  const ParameterExprPtr& input = expr.inputs()[0];
  const std::vector<int64_t> order = expr.attributes().Ints("perm", {1, 0});
  if (!IsMatrix(input, DType::kFloat32) || order != std::vector<int64_t>{1, 0}) {
    return std::nullopt;
  }
  std::optional<Int8Weights> weights = SplitInt8(input, 1 - axis);
  if (!weights.has_value()) return std::nullopt;
  weights->values = ParameterExpr::Apply("Transpose", expr.attributes(), {weights->values},
                                         DType::kInt8, expr.shape());
  return weights;
}

}  // namespace

std::optional<Int8Weights> SplitInt8(const ParameterExprPtr& weights, int64_t axis) {
  if (!IsMatrix(weights, DType::kFloat32)) return std::nullopt;
  const std::string& op = weights->op();
  const auto& inputs = weights->inputs();
  if (op == "Cast" && IsMatrix(inputs[0], DType::kInt8)) return Int8Weights{inputs[0], nullptr};
  if (op == "DequantizeLinear") return SplitDequantized(*weights, axis);
  if (op == "Mul") return SplitProduct(*weights, axis);
  if (op == "Concat") return SplitConcatenated(*weights, axis);
  if (op == "Transpose") return SplitTransposed(*weights, axis);
  if (op == "Identity") return SplitInt8(inputs[0], axis);
  return std::nullopt;
}

}  // namespace reprise::cpu
