// onnxruntime's attention with its projection inside, and its embedding layer, in steps.
#include <cmath>

#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/attention/attention_op.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/comparison_op.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/products/matmul_op.h"
#include "runtime/ops/reduce/layer_norm_op.h"
#include "runtime/ops/reduce/reduce_op.h"
#include "runtime/passes/match/attention_parts.h"
#include "runtime/passes/simplify/rules.h"

namespace reprise {
namespace {

// x times the weights of onnxruntime's Attention, without their bias, or of its QAttention, whose
// operands are integers: input 3 and 4 are their scales, 6 and 7 their zero points.
absl::StatusOr<ValueId> Projection(Graph& graph, const Node& node, bool quantized) {
  if (!quantized) return AddInferred(graph, MatMulOp::kName, {node.inputs[0], node.inputs[1]});
  std::vector<ValueId> operands = {node.inputs[0], node.inputs[1], node.input(6), node.input(7)};
  while (operands.back() == kNone) operands.pop_back();
  ASSIGN_OR_RETURN(const ValueId sums,
                   AddInferred(graph, MatMulIntegerOp::kName, std::move(operands)));
  ASSIGN_OR_RETURN(const ValueId rows, AddCast(graph, sums, DType::kFloat32));
  ASSIGN_OR_RETURN(const ValueId scale,
                   AddInferred(graph, MulOp::kName, {node.inputs[3], node.inputs[4]}));
  return AddInferred(graph, MulOp::kName, {rows, scale});
}

// onnxruntime's Attention with its projection: x, weights, bias?, mask?, past?, attention_bias?; a
// QAttention has the mask as input 5 and the past as input 8.
absl::StatusOr<ValueId> ProjectedAttention(Graph& graph, const Node& node) {
  const Attributes& attributes = node.attributes;
  const bool quantized = node.op == QAttentionOp::kName;
  for (const size_t i : {0, 1}) {
    if (node.input(i) == kNone || !ShapeOf(graph, node.inputs[i]).has_value()) return kNone;
  }
  for (const size_t i : quantized ? std::vector<size_t>{3, 4} : std::vector<size_t>{0, 1}) {
    if (!IsFloat32(graph, node.input(i))) return kNone;
  }
  const ValueId past = node.input(quantized ? 8 : 4);
  const ValueId given_mask = node.input(quantized ? 5 : 3);
  const ValueId bias_of_scores = quantized ? kNone : node.input(5);
  if (past != kNone || (!quantized && node.inputs.size() > 6) ||
      !OnlyFirstResultIsUsed(graph, node) || attributes.Int("do_rotary", 0) != 0) {
    return kNone;
  }
  const Shape x = *ShapeOf(graph, node.inputs[0]);
  const int64_t columns = ShapeOf(graph, node.inputs[1])->back();
  const int64_t heads = attributes.Int("num_heads", 0);
  const std::vector<int64_t> widths =
      attributes.Ints("qkv_hidden_sizes", {columns / 3, columns / 3, columns / 3});
  const float filter = attributes.Float("mask_filter_value", -10000);
  const Shape scores_shape = {x[0], heads, x[1], x[1]};
  ValueId mask = kNone;
  if (given_mask != kNone) {
    ASSIGN_OR_RETURN(mask, PaddingMask(graph, given_mask, scores_shape, filter));
    if (mask == kNone) return kNone;
  }
  ASSIGN_OR_RETURN(ValueId rows, Projection(graph, node, quantized));
  if (node.input(2) != kNone) {
    ASSIGN_OR_RETURN(rows, AddInferred(graph, AddOp::kName, {rows, node.inputs[2]}));
  }
  const ValueId cuts = graph.AddConstant("", Tensor::Int64s(widths));
  const NodeId split = graph.AddNode(SplitOp::kName, {rows, cuts}, {{"axis", int64_t{-1}}}, 3);
  RETURN_IF_ERROR(InferNode(graph, split));
  ValueId operands[3];
  for (int i = 0; i < 3; ++i) {
    ASSIGN_OR_RETURN(operands[i], SplitHeads(graph, graph.node(split).outputs[i], heads));
  }
  float scale = attributes.Float("scale", 0);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<float>(widths[0] / heads));
  ASSIGN_OR_RETURN(ValueId scores, Scores(graph, operands[0], operands[1], scale));
  for (const ValueId added : {mask, bias_of_scores}) {
    if (added == kNone) continue;
    ASSIGN_OR_RETURN(scores, AddInferred(graph, AddOp::kName, {scores, added}));
  }
  if (attributes.Int("unidirectional", 0) != 0) {
    ASSIGN_OR_RETURN(scores, MaskFuture(graph, scores, /*past=*/0, filter));
  }
  ASSIGN_OR_RETURN(const ValueId result,
                   Weigh(graph, scores, operands[2], /*guard=*/false, node.name));
  return JoinHeads(graph, result);
}

}  // namespace

absl::StatusOr<ValueId> ProjectedAttentionRule(Graph& graph, NodeId id) {
  const std::string& op = graph.node(id).op;
  if (op != MicrosoftAttentionOp::kName && op != QAttentionOp::kName) return kNone;
  ASSIGN_OR_RETURN(const bool fits, HasFittingOperands(graph, id));
  if (!fits) return kNone;
  const Node copy = graph.node(id);  // The rule adds nodes, which moves the others.
  return ProjectedAttention(graph, copy);
}

// ids, segment ids?, tables of words, positions and segments?, gamma, beta, mask?, position ids? ->
// the norm, the count of each row's mask, the sum.
absl::StatusOr<ValueId> EmbeddingNormRule(Graph& graph, NodeId id) {
  if (graph.node(id).op != EmbedLayerNormOp::kName) return kNone;
  const Node node = graph.node(id);
  for (size_t i : {2, 3}) {
    if (!IsFloat32(graph, node.input(i))) return kNone;
  }
  if (!ShapeOf(graph, node.inputs[0]).has_value()) return kNone;
  const int64_t length = (*ShapeOf(graph, node.inputs[0]))[1];
  ValueId positions = node.input(8);
  if (positions == kNone) {
    std::vector<int64_t> counted(length);
    for (int64_t i = 0; i < length; ++i) counted[i] = i;
    positions = graph.AddConstant("", Tensor::FromVector(DType::kInt64, {1, length}, counted));
  }
  const auto looked_up = [&](ValueId table, ValueId ids) -> absl::StatusOr<ValueId> {
    ASSIGN_OR_RETURN(ids, AddRangeCheck(graph, ids, (*ShapeOf(graph, table))[0]));
    return AddInferred(graph, GatherOp::kName, {table, ids}, {{"axis", int64_t{0}}});
  };
  ASSIGN_OR_RETURN(ValueId sum, looked_up(node.inputs[2], node.inputs[0]));
  ASSIGN_OR_RETURN(const ValueId places, looked_up(node.inputs[3], positions));
  ASSIGN_OR_RETURN(sum, AddInferred(graph, AddOp::kName, {sum, places}));
  if (node.input(1) != kNone && node.input(4) != kNone) {
    ASSIGN_OR_RETURN(const ValueId segments, looked_up(node.inputs[4], node.inputs[1]));
    ASSIGN_OR_RETURN(sum, AddInferred(graph, AddOp::kName, {sum, segments}));
  }
  ASSIGN_OR_RETURN(
      const ValueId normalized,
      AddInferred(
          graph, LayerNormalizationOp::kName, {sum, node.inputs[5], node.inputs[6]},
          {{"axis", int64_t{-1}}, {"epsilon", EmbedLayerNormOp::From(node.attributes).epsilon}},
          node.name));
  if (IsUsed(graph, node.output(1))) {
    ValueId counts = kNone;
    if (node.input(7) == kNone) {
      const int64_t batch = (*ShapeOf(graph, node.inputs[0]))[0];
      counts = graph.AddConstant(
          "", Tensor::FromVector(DType::kInt32, {batch}, std::vector<int32_t>(batch, 0)));
    } else {
      const ValueId one = graph.AddConstant("", ScalarLike(graph, node.inputs[7], 1));
      const ValueId axis = graph.AddConstant("", Tensor::Int64s({1}));
      ASSIGN_OR_RETURN(counts, AddInferred(graph, EqualOp::kName, {node.inputs[7], one}));
      ASSIGN_OR_RETURN(counts, AddCast(graph, counts, DType::kInt32));
      ASSIGN_OR_RETURN(counts, AddInferred(graph, ReduceSumOp::kName, {counts, axis},
                                           {{"keepdims", int64_t{0}}}));
    }
    graph.ReplaceAllUses(node.outputs[1], counts);
  }
  if (IsUsed(graph, node.output(2))) graph.ReplaceAllUses(node.outputs[2], sum);
  return normalized;
}

}  // namespace reprise
