#include "runtime/passes/match/batch_norm.h"

#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/reduce/channel_norm_op.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {

// factor = scale / sqrt(variance + epsilon), bias' = (bias - mean) * factor + shift.
absl::StatusOr<std::optional<BatchNorm>> BatchNormOf(Graph& graph, NodeId id, ValueId bias) {
  const Node& node = graph.node(id);
  const std::vector<ValueId> inputs = node.inputs;
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (!IsWeight(graph, inputs[i]) || !IsFloat32(graph, inputs[i])) return std::nullopt;
  }
  if (bias != kNone && (!IsWeight(graph, bias) || !IsFloat32(graph, bias))) return std::nullopt;
  const Shape maps = *ShapeOf(graph, inputs[1]);
  const auto apply = [&](absl::string_view op, std::vector<ValueId> operands) {
    return AddWeight(graph, op, {}, operands, DType::kFloat32, maps);
  };
  const float plus = BatchNormalizationOp::From(node.attributes).epsilon;
  const ValueId epsilon =
      graph.AddConstant("", Tensor::FromVector<float>(DType::kFloat32, {1}, {plus}));
  const ValueId scale = inputs[1], shift = inputs[2], mean = inputs[3], variance = inputs[4];
  ASSIGN_OR_RETURN(ValueId factor, apply(AddOp::kName, {variance, epsilon}));
  ASSIGN_OR_RETURN(factor, apply(SqrtOp::kName, {factor}));
  ASSIGN_OR_RETURN(factor, apply(DivOp::kName, {scale, factor}));
  if (bias == kNone) {
    ASSIGN_OR_RETURN(bias, apply(NegOp::kName, {mean}));
  } else {
    ASSIGN_OR_RETURN(bias, apply(SubOp::kName, {bias, mean}));
  }
  ASSIGN_OR_RETURN(bias, apply(MulOp::kName, {bias, factor}));
  ASSIGN_OR_RETURN(bias, apply(AddOp::kName, {bias, shift}));
  return BatchNorm{factor, bias};
}

absl::StatusOr<bool> ReplaceBatchNormOfRows(Graph& graph, NodeId id) {
  const Node node = graph.node(id);  // A copy: adding nodes moves them.
  if (node.removed || node.op != BatchNormalizationOp::kName || !IsFloat32(graph, node.inputs[0]) ||
      ShapeOf(graph, node.inputs[0])->size() != 2) {
    return false;
  }
  ASSIGN_OR_RETURN(const std::optional<BatchNorm> norm, BatchNormOf(graph, id, kNone));
  if (!norm.has_value()) return false;
  ASSIGN_OR_RETURN(ValueId y, AddInferred(graph, MulOp::kName, {node.inputs[0], norm->factor}));
  ASSIGN_OR_RETURN(y, AddInferred(graph, AddOp::kName, {y, norm->bias}, {}, node.name));
  Replace(graph, node.outputs[0], y);
  return true;
}

}  // namespace reprise
