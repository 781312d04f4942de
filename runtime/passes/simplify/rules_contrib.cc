#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/activation_op.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/reduce/layer_norm_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/match/attention_parts.h"
#include "runtime/passes/simplify/rules.h"

namespace reprise {
namespace {

absl::StatusOr<ValueId> BiasedGelu(Graph& graph, const Node& node, const char* approximate) {
  ValueId x = node.inputs[0];
  if (node.input(1) != kNone) {
    ASSIGN_OR_RETURN(x, AddInferred(graph, AddOp::kName, {x, node.inputs[1]}));
  }
  return AddInferred(graph, GeluOp::kName, {x}, {{"approximate", std::string(approximate)}},
                     node.name);
}

// Inputs x, skip, gamma, [beta], bias; outputs the norm, two statistics, the sum.
absl::StatusOr<ValueId> SkippedNorm(Graph& graph, const Node& node, bool simplified) {
  if (IsUsed(graph, node.output(1)) || IsUsed(graph, node.output(2))) return kNone;
  const ValueId bias = node.input(simplified ? 3 : 4);
  ASSIGN_OR_RETURN(ValueId sum, AddInferred(graph, AddOp::kName, {node.inputs[0], node.inputs[1]}));
  if (bias != kNone) {
    ASSIGN_OR_RETURN(sum, AddInferred(graph, AddOp::kName, {sum, bias}));
  }
  std::vector<ValueId> inputs = {sum, node.inputs[2]};
  if (!simplified && node.input(3) != kNone) inputs.push_back(node.inputs[3]);
  ASSIGN_OR_RETURN(
      const ValueId normalized,
      AddInferred(
          graph, simplified ? RmsNormalizationOp::kName : LayerNormalizationOp::kName,
          std::move(inputs),
          {{"axis", int64_t{-1}}, {"epsilon", SkipLayerNormOp::From(node.attributes).epsilon}},
          node.name));
  if (node.output(3) != kNone) graph.ReplaceAllUses(node.outputs[3], sum);
  return normalized;
}

}  // namespace

absl::StatusOr<ValueId> ContribRule(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op.compare(0, 14, "com.microsoft.") != 0) return kNone;
  for (ValueId input : node.inputs) {
    if (input != kNone && !IsFloat32(graph, input)) return kNone;
  }
  const Node copy = node;  // Rules add nodes, which moves the others.
  if (copy.op == "com.microsoft.BiasGelu") return BiasedGelu(graph, copy, "none");
  if (copy.op == "com.microsoft.FastGelu") return BiasedGelu(graph, copy, "tanh");
  if (copy.op == SkipLayerNormOp::kName) return SkippedNorm(graph, copy, false);
  if (copy.op == SkipSimplifiedLayerNormOp::kName) {
    return SkippedNorm(graph, copy, true);
  }
  return kNone;
}

}  // namespace reprise
