// Fuses a QuantizeLinear that DequantizeLinear undoes, with the same scale and zero point and no
// other reader of the integers, into one reprise.FakeQuantize: the rounding stays.
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/quantized/quantize_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/quantized/quantized_passes.h"

namespace reprise {
namespace {

// Returns whether both have scale and zero point from the same values, along the same axis.
bool AreInverse(const Graph& graph, const Node& quantize, const Node& dequantize) {
  if (quantize.op != QuantizeLinearOp::kName || dequantize.op != DequantizeLinearOp::kName ||
      !IsFloat32(graph, quantize.inputs[QuantizeLinearOp::kX]) ||
      !IsFloat32(graph, quantize.inputs[QuantizeLinearOp::kScale]) ||
      !IsFloat32(graph, dequantize.outputs[0]) ||
      quantize.inputs[QuantizeLinearOp::kScale] != dequantize.inputs[DequantizeLinearOp::kScale] ||
      quantize.input(QuantizeLinearOp::kZeroPoint) !=
          dequantize.input(DequantizeLinearOp::kZeroPoint)) {
    return false;
  }
  for (const Node* node : {&quantize, &dequantize}) {
    if (QuantizeLinearOp::From(node->attributes).block_size != 0) return false;
  }
  return HasOneElement(graph, quantize.inputs[QuantizeLinearOp::kScale]) ||
         QuantizeLinearOp::From(quantize.attributes).axis ==
             QuantizeLinearOp::From(dequantize.attributes).axis;
}

absl::StatusOr<bool> FuseFakeQuantizeAt(Graph& graph, NodeId id) {
  const Node node = graph.node(id);
  if (node.op != QuantizeLinearOp::kName) return false;
  const NodeId user = OnlyUser(graph, node.outputs[0]);
  if (user == kNone || graph.node(user).inputs[0] != node.outputs[0] ||
      !AreInverse(graph, node, graph.node(user))) {
    return false;
  }
  const ValueId floats = graph.node(user).outputs[0];
  ASSIGN_OR_RETURN(const ValueId fused, AddInferred(graph, FakeQuantizeOp::kName, node.inputs,
                                                    node.attributes, node.name));
  Replace(graph, floats, fused);
  return true;
}

}  // namespace

std::unique_ptr<Pass> FuseFakeQuantize() {
  return PassOfNodes("fuse_fake_quantize", FuseFakeQuantizeAt);
}

}  // namespace reprise
