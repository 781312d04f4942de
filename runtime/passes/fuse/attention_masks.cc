#include "runtime/passes/fuse/attention_masks.h"

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {
namespace {

// Returns the shape in which a mask that meets scores of `mask.scores_shape` broadcasts
// to [batch, heads, queries, keys]; nullopt when there is none.
std::optional<Shape> MaskShape(const Graph& graph, const AttentionMask& mask,
                               const AttentionSizes& sizes) {
  const Shape scores = {sizes.batch, sizes.heads, sizes.queries, sizes.keys};
  if (!ShapeOf(graph, mask.value).has_value()) return std::nullopt;
  const Shape& shape = *ShapeOf(graph, mask.value);
  if (shape.size() > mask.scores_shape.size()) return std::nullopt;
  if (mask.scores_shape == scores) return shape;
  if (mask.scores_shape.size() == 2) return shape;
  if (mask.scores_shape.size() != 3) return std::nullopt;
  if (shape.size() < 3 || shape[0] == 1) return shape;
  return Shape{sizes.batch, sizes.heads, shape[1], shape[2]};
}

// Returns the mask as [batch, heads, queries, keys], each dim of all or of 1, where it meets scores
// [batch, queries, heads, keys].
absl::StatusOr<ValueId> MaskByHead(Graph& graph, ValueId mask) {
  const Shape own = *ShapeOf(graph, mask);
  Shape shape(4 - own.size(), 1);
  shape.insert(shape.end(), own.begin(), own.end());
  if (shape[2] == 1) {  // The same for all heads.
    std::swap(shape[1], shape[2]);
    return AddReshape(graph, mask, shape);
  }
  ASSIGN_OR_RETURN(mask, AddReshape(graph, mask, shape));
  return AddInferred(graph, TransposeOp::kName, {mask},
                     {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
}

}  // namespace

bool MasksFit(const Graph& graph, const AttentionPattern& pattern, const AttentionSizes& sizes) {
  for (const AttentionMask& mask : pattern.masks) {
    if (mask.kind == AttentionMask::Kind::kFloor) continue;
    const bool chooses =
        mask.kind == AttentionMask::Kind::kKeep || mask.kind == AttentionMask::Kind::kReplace;
    if (graph.value(mask.value).dtype != (chooses ? DType::kBool : DType::kFloat32)) return false;
    if (pattern.queries_and_heads.has_value()) {
      if (mask.scores_shape.size() != 4 || ShapeOf(graph, mask.value)->size() > 4) return false;
    } else if (!MaskShape(graph, mask, sizes).has_value()) {
      return false;
    }
  }
  return true;
}

// Joins masks. A mask that replaces scores replaces the masks below it as well: a key that both
// hide is as low as one that either hides.
absl::StatusOr<ValueId> CombineMasks(Graph& graph, const AttentionPattern& pattern,
                                     const AttentionSizes& sizes) {
  ValueId combined = kNone;
  for (auto mask = pattern.masks.rbegin(); mask != pattern.masks.rend(); ++mask) {
    if (mask->kind == AttentionMask::Kind::kFloor) {
      // Scores themselves are never that low.
      if (combined == kNone) continue;
      const ValueId fill =
          graph.AddConstant("", Tensor::FloatScalar(static_cast<float>(mask->fill)));
      ASSIGN_OR_RETURN(combined, AddInferred(graph, MaxOp::kName, {combined, fill}));
      continue;
    }
    ValueId value = mask->value;
    if (pattern.queries_and_heads.has_value()) {
      ASSIGN_OR_RETURN(value, MaskByHead(graph, value));
    } else {
      const Shape shape = *MaskShape(graph, *mask, sizes);
      ASSIGN_OR_RETURN(value, AddReshape(graph, value, shape));
    }
    if (mask->kind == AttentionMask::Kind::kKeep || mask->kind == AttentionMask::Kind::kReplace) {
      const bool keep = mask->kind == AttentionMask::Kind::kKeep;
      if (keep && pattern.masks.size() == 1 && std::isinf(mask->fill)) return value;
      if (combined == kNone) combined = graph.AddConstant("", Tensor::FloatScalar(0));
      const ValueId fill = graph.AddConstant("", Tensor::FloatScalar(mask->fill));
      ASSIGN_OR_RETURN(combined,
                       AddInferred(graph, WhereOp::kName,
                                   {value, keep ? combined : fill, keep ? fill : combined}));
      continue;
    }
    if (mask->kind == AttentionMask::Kind::kSub) {
      ASSIGN_OR_RETURN(value, AddInferred(graph, NegOp::kName, {value}));
    }
    if (mask->scale != 1) {
      const auto scale = static_cast<float>(mask->scale);
      const ValueId factor = graph.AddConstant("", Tensor::FloatScalar(scale));
      ASSIGN_OR_RETURN(value, AddInferred(graph, MulOp::kName, {value, factor}));
    }
    if (combined == kNone) {
      combined = value;
    } else {
      ASSIGN_OR_RETURN(combined, AddInferred(graph, AddOp::kName, {value, combined}));
    }
  }
  return combined;
}

}  // namespace reprise
