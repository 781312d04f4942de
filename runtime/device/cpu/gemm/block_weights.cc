#include "runtime/device/cpu/gemm/block_weights.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/graph/parameter_expr.h"
#include "runtime/graph/tensor.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/quantized/quantize_op.h"
#include "runtime/ops/weights/bits_op.h"
#include "runtime/ops/weights/block_formats.h"
#include "runtime/ops/weights/quantized_weights.h"
#include "runtime/ops/weights/stored_op.h"

namespace reprise::cpu {
namespace {

bool IsMatrix(const ParameterExprPtr& expr) { return expr != nullptr && expr->shape().size() == 2; }

// Reshapes `expr` to `rows` rows of equal size; null where the elements cannot be divided so.
ParameterExprPtr AsRows(const ParameterExprPtr& expr, int64_t rows) {
  const int64_t elements = NumElements(expr->shape());
  if (rows <= 0 || elements % rows != 0) return nullptr;
  const Shape shape = {rows, elements / rows};
  if (expr->shape() == shape) return expr;
  if (expr->is_constant()) return ParameterExpr::Constant(expr->constant().Reshaped(shape));
  return ParameterExpr::Apply(ReshapeOp::kName, {},
                              {expr, ParameterExpr::Constant(Tensor::Int64s({rows, shape[1]}))},
                              expr->dtype(), shape);
}

ParameterExprPtr Turned(const ParameterExprPtr& matrix) {
  return ParameterExpr::Apply(TransposeOp::kName, {{"perm", std::vector<int64_t>{1, 0}}}, {matrix},
                              matrix->dtype(), {matrix->shape()[1], matrix->shape()[0]});
}

// reprise.DequantizeBits: [n, k], packed as it is to be.
std::optional<BlockWeights> SplitBits(const ParameterExpr& expr) {
  const auto& inputs = expr.inputs();
  const int64_t n = expr.shape()[0];
  BlockWeights weights;
  weights.bits = static_cast<int>(DequantizeBitsOp::From(expr.attributes()).bits);
  weights.kept_bits = std::max(weights.bits, 4);
  weights.block = DequantizeBitsOp::From(expr.attributes()).block_size;
  weights.point = 1 << (weights.bits - 1);
  weights.numbers = AsRows(inputs[0], n);
  weights.scales = AsRows(inputs[1], n);
  const bool has_points = inputs.size() > 2 && inputs[2] != nullptr;
  if (has_points) {
    const DType dtype = inputs[2]->dtype();
    if (dtype != DType::kFloat32 && dtype != DType::kUInt8) return std::nullopt;
    weights.points = AsRows(inputs[2], n);
  }
  if (weights.numbers == nullptr || weights.scales == nullptr ||
      (has_points && weights.points == nullptr)) {
    return std::nullopt;
  }
  return weights;
}

// reprise.StoredFloats: [n, k] of the blocks of a file.
std::optional<BlockWeights> SplitStored(const ParameterExpr& expr) {
  const std::string name = StoredFloatsOp::From(expr.attributes()).format;
  const ops::BlockFormat* const format = ops::FindBlockFormat(name);
  if (format == nullptr) return std::nullopt;
  const int64_t n = expr.shape()[0], k = expr.shape()[1];
  const auto part = [&](const char* which, DType dtype, int64_t columns) {
    return ParameterExpr::Apply(StoredPartOp::kName,
                                {{"format", name}, {"part", std::string(which)}}, expr.inputs(),
                                dtype, {n, columns});
  };
  BlockWeights weights;
  weights.bits = weights.kept_bits = format->kept_bits;
  weights.block = format->group;
  weights.point = 1 << (format->kept_bits - 1);
  weights.numbers = part(StoredPartOp::kNumbers, DType::kUInt8, k * format->kept_bits / 8);
  weights.scales = part(StoredPartOp::kScales, DType::kFloat32, k / format->group);
  weights.offsets = format->offsets;
  if (weights.offsets) {
    weights.points = part(StoredPartOp::kOffsets, DType::kFloat32, k / format->group);
  }
  return weights;
}

bool IsNibbles(const ParameterExprPtr& numbers) {
  if (numbers->op() == UnpackNibblesOp::kName) return true;
  return numbers->op() == TransposeOp::kName && IsNibbles(numbers->inputs()[0]);
}

// DequantizeLinear in blocks along dim 1 - `axis`.
std::optional<BlockWeights> SplitLinear(const ParameterExpr& expr, int64_t axis) {
  const auto& inputs = expr.inputs();
  const auto blocked = NormalizeAxis(expr.attributes().Int("axis", 1), 2);
  BlockWeights weights;
  weights.block = DequantizeBitsOp::From(expr.attributes()).block_size;
  if (weights.block <= 0 || !blocked.ok() || *blocked != 1 - axis) return std::nullopt;
  const DType dtype = inputs[0]->dtype();
  if ((dtype != DType::kInt8 && dtype != DType::kUInt8) || !IsMatrix(inputs[1])) {
    return std::nullopt;
  }
  const bool has_points = inputs.size() > 2 && inputs[2] != nullptr;
  if (has_points && (!IsMatrix(inputs[2]) || inputs[2]->dtype() != dtype)) return std::nullopt;
  weights.bits = 8;
  weights.kept_bits = IsNibbles(inputs[0]) ? 4 : 8;
  const auto by_column = [&](const ParameterExprPtr& of) { return axis == 0 ? of : Turned(of); };
  weights.numbers = by_column(inputs[0]);
  weights.scales = by_column(inputs[1]);
  if (has_points) weights.points = by_column(inputs[2]);
  return weights;
}

std::optional<BlockWeights> SplitJoined(const ParameterExpr& expr, int64_t axis) {
  const auto joined = NormalizeAxis(expr.attributes().Int("axis", 0), 2);
  if (!joined.ok() || *joined != axis) return std::nullopt;
  std::vector<ParameterExprPtr> numbers, scales, points;
  std::optional<BlockWeights> first;
  const auto alike = [](const ParameterExprPtr& a, const ParameterExprPtr& b) {
    if (a == nullptr || b == nullptr) return a == b;
    return a->dtype() == b->dtype() && a->shape()[1] == b->shape()[1];
  };
  for (const ParameterExprPtr& input : expr.inputs()) {
    std::optional<BlockWeights> part = SplitBlocks(input, axis);
    if (!part.has_value()) return std::nullopt;
    if (!first.has_value()) first = part;
    if (part->bits != first->bits || part->kept_bits != first->kept_bits ||
        part->block != first->block || part->point != first->point ||
        part->offsets != first->offsets || !alike(part->numbers, first->numbers) ||
        !alike(part->points, first->points)) {
      return std::nullopt;
    }
    numbers.push_back(part->numbers);
    scales.push_back(part->scales);
    if (part->points != nullptr) points.push_back(part->points);
  }
  if (!first.has_value()) return std::nullopt;
  const int64_t n = expr.shape()[axis];
  const auto join = [&](std::vector<ParameterExprPtr> parts) {
    const DType dtype = parts[0]->dtype();
    const Shape shape = {n, parts[0]->shape()[1]};
    return ParameterExpr::Apply(ConcatOp::kName, {{"axis", int64_t{0}}}, std::move(parts), dtype,
                                shape);
  };
  first->numbers = join(std::move(numbers));
  first->scales = join(std::move(scales));
  if (!points.empty()) first->points = join(std::move(points));
  return first;
}

// Consecutive columns of another matrix, as cut_columns writes them.
std::optional<BlockWeights> SplitCut(const ParameterExpr& expr, int64_t axis) {
  const auto& inputs = expr.inputs();
  if (inputs.size() != 4 || !inputs[3]->is_constant()) return std::nullopt;
  const absl::StatusOr<std::vector<int64_t>> along = inputs[3]->constant().ToInt64s();
  if (!along.ok() || *along != std::vector<int64_t>{axis}) return std::nullopt;
  std::optional<BlockWeights> weights = SplitBlocks(inputs[0], axis);
  if (!weights.has_value()) return std::nullopt;
  const ParameterExprPtr rows = ParameterExpr::Constant(Tensor::Int64s({0}));
  for (ParameterExprPtr* part : {&weights->numbers, &weights->scales, &weights->points}) {
    if (*part == nullptr) continue;
    const DType dtype = (*part)->dtype();
    const Shape shape = {expr.shape()[axis], (*part)->shape()[1]};
    *part =
        ParameterExpr::Apply(SliceOp::kName, {}, {*part, inputs[1], inputs[2], rows}, dtype, shape);
  }
  return weights;
}

std::optional<BlockWeights> Split(const ParameterExpr& expr, int64_t axis) {
  const std::string& op = expr.op();
  if (op == DequantizeBitsOp::kName) return axis == 0 ? SplitBits(expr) : std::nullopt;
  if (op == StoredFloatsOp::kName) return axis == 0 ? SplitStored(expr) : std::nullopt;
  if (op == DequantizeLinearOp::kName) return SplitLinear(expr, axis);
  if (op == ConcatOp::kName) return SplitJoined(expr, axis);
  if (op == SliceOp::kName) return SplitCut(expr, axis);
  if (op == IdentityOp::kName) return SplitBlocks(expr.inputs()[0], axis);
  if (op == TransposeOp::kName) {
    const bool turns = expr.attributes().Ints("perm", {1, 0}) == std::vector<int64_t>{1, 0};
    return turns ? SplitBlocks(expr.inputs()[0], 1 - axis) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

BlockForm BlockWeights::Form() const {
  const int middle = 1 << (kept_bits - 1);
  return {.bits = kept_bits,
          .block = block,
          .points = !offsets && (points != nullptr || point + (is_signed() ? middle : 0) != middle),
          .offsets = offsets};
}

std::optional<Int8Weights> SplitInt8(const ParameterExprPtr& weights, int64_t axis) {
  const std::optional<ops::QuantizedWeights> parts = ops::SplitQuantized(weights, axis);
  if (!parts.has_value() || parts->values->dtype() != DType::kInt8 || parts->points != nullptr) {
    return std::nullopt;
  }
  return Int8Weights{parts->values, parts->scales};
}

std::optional<BlockWeights> SplitColumns(const ParameterExprPtr& weights, int64_t axis) {
  const std::optional<Int8Weights> split = SplitInt8(weights, axis);
  if (!split.has_value()) return std::nullopt;
  BlockWeights columns;
  columns.bits = columns.kept_bits = 8;
  columns.numbers = axis == 0 ? split->values : Turned(split->values);
  const int64_t per_word = columns.Form().PerWord();
  columns.block = (weights->shape()[1 - axis] + per_word - 1) / per_word * per_word;
  columns.scales = split->scales;
  if (columns.scales == nullptr) {
    columns.scales =
        ParameterExpr::Constant(Tensor::FromVector<float>(DType::kFloat32, {1}, {1.0f}));
  }
  if (columns.block == 0) return std::nullopt;
  return columns;
}

std::optional<BlockWeights> SplitBlocks(const ParameterExprPtr& weights, int64_t axis) {
  if (!IsMatrix(weights) || weights->dtype() != DType::kFloat32) return std::nullopt;
  std::optional<BlockWeights> split = Split(*weights, axis);
  if (!split.has_value() || split->scales->dtype() != DType::kFloat32) return std::nullopt;
  const int64_t k = weights->shape()[1 - axis];
  const int64_t per_word = split->Form().PerWord();
  if (k == 0) return std::nullopt;
  // A block that covers the whole row is as long as the row, in whole words.
  if (split->block >= k) split->block = (k + per_word - 1) / per_word * per_word;
  return split->block % per_word == 0 ? split : std::nullopt;
}

}  // namespace reprise::cpu
