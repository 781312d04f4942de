// LayerNormalization of a sum of two equal shapes becomes reprise.AddLayerNorm. Where others read
// the sum too, it is output 1, unless a product with weights can add it in its own last step.
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/quantized/linear_form.h"
#include "runtime/ops/reduce/layer_norm_op.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/match/attention_parts.h"

namespace reprise {
namespace {

// FuseResidual will take this Add.
bool LinearTakesTheSum(const Graph& graph, const Node& add) {
  for (int side = 0; side < 2; ++side) {
    const NodeId producer = ProducerOf(graph, add.inputs[side]);
    if (producer == kNone) continue;
    const ops::LinearForm* form = ops::LinearFormOf(graph.node(producer).op);
    if (form != nullptr && graph.node(producer).input(form->residual) == kNone &&
        OnlyUser(graph, add.inputs[side]) != kNone && !IsWeight(graph, add.inputs[1 - side])) {
      return true;
    }
  }
  return false;
}

bool TakesResidual(const Graph& graph, const Node& node) {
  if (node.op != LayerNormalizationOp::kName || IsUsed(graph, node.output(1)) ||
      IsUsed(graph, node.output(2))) {
    return false;
  }
  const ValueId sum = node.inputs[0];
  const Node* add = graph.ProducerIf(sum, AddOp::kName);
  if (add == nullptr || !IsFloat32(graph, sum) || !SameShape(graph, add->inputs[0], sum) ||
      !SameShape(graph, add->inputs[1], sum) || IsWeight(graph, add->inputs[0]) ||
      IsWeight(graph, add->inputs[1])) {
    return false;
  }
  const Shape& shape = *ShapeOf(graph, sum);
  const int64_t axis = node.attributes.Int("axis", -1);
  if (shape.empty() || (axis != -1 && axis != static_cast<int64_t>(shape.size()) - 1)) {
    return false;
  }
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != kNone && !HasShape(graph, node.inputs[i], {shape.back()})) return false;
  }
  return OnlyUser(graph, sum) != kNone || !LinearTakesTheSum(graph, *add);
}

absl::StatusOr<bool> FuseAddLayerNormAt(Graph& graph, NodeId id) {
  if (!TakesResidual(graph, graph.node(id))) return false;
  const Node norm = graph.node(id);
  const ValueId sum = norm.inputs[0];
  const Node& add = graph.node(ProducerOf(graph, sum));
  std::vector<ValueId> inputs = {add.inputs[0], add.inputs[1], norm.inputs[1]};
  if (norm.input(2) != kNone) inputs.push_back(norm.inputs[2]);
  const bool sum_is_read = OnlyUser(graph, sum) == kNone;
  const NodeId fused = graph.AddNode(
      AddLayerNormOp::kName, std::move(inputs),
      {{"axis", int64_t{-1}}, {"epsilon", LayerNormalizationOp::From(norm.attributes).epsilon}},
      sum_is_read ? 2 : 1, norm.name);
  RETURN_IF_ERROR(InferNode(graph, fused));
  Replace(graph, norm.outputs[0], graph.node(fused).outputs[0]);
  if (sum_is_read) Replace(graph, sum, graph.node(fused).outputs[1]);
  return true;
}

}  // namespace

std::unique_ptr<Pass> FuseAddLayerNorm() {
  return PassOfNodes("fuse_add_layer_norm", FuseAddLayerNormAt);
}

}  // namespace reprise
