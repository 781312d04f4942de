#include "runtime/passes/quantized/byte_moves.h"

#include "absl/algorithm/container.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/quantized/quantize_op.h"
#include "runtime/ops/windows/pool_op.h"
#include "runtime/ops/windows/resize_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/quantized/byte_function.h"
#include "runtime/passes/quantized/byte_scale.h"

namespace reprise {
namespace {

// Returns whether the node only moves elements of its first operand, whatever the floats are.
bool IsMove(const Node& node) {
  return FactsOf(node.op).Is(kMovesBytes) ||
         (node.op == ResizeOp::kName && node.attributes.String("mode", "nearest") == "nearest" &&
          node.attributes.String("coordinate_transformation_mode", "") != "tf_crop_and_resize");
}

bool IsMaxPool(const Node& node) { return node.op == MaxPoolOp::kName && node.output(1) == kNone; }

// Returns whether all readers of `value` take bytes.
bool GoesOnAsBytes(const Graph& graph, ValueId value) {
  const std::vector<NodeId>& users = graph.value(value).users;
  return !users.empty() && !graph.IsOutput(value) && absl::c_all_of(users, [&](NodeId id) {
    const Node& user = graph.node(id);
    return user.op == ConcatOp::kName ||
           (user.inputs[0] == value &&
            (QuantisesTo(graph, user).has_value() || IsMove(user) || IsMaxPool(user)));
  });
}

}  // namespace

absl::StatusOr<bool> MoveBytes(Graph& graph, const Node& node) {
  if (!IsMove(node) && !IsMaxPool(node)) return false;
  ValueId bytes = kNone;
  const std::optional<ByteScale> scale = Dequantised(graph, node.inputs[0], bytes);
  if (!scale.has_value() || !ShapeOf(graph, bytes).has_value() ||
      (IsMaxPool(node) && !KeepsOrder(graph, *scale))) {
    return false;
  }
  for (const ValueId output : node.outputs) {
    if (output != kNone && !GoesOnAsBytes(graph, output)) return false;
  }
  const Node dequantize = *graph.ProducerIf(node.inputs[0], DequantizeLinearOp::kName);
  std::vector<ValueId> inputs = node.inputs;
  inputs[0] = bytes;
  const NodeId moved =
      graph.AddNode(node.op, std::move(inputs), node.attributes, node.outputs.size(), node.name);
  RETURN_IF_ERROR(InferNode(graph, moved));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNone) continue;
    std::vector<ValueId> operands = dequantize.inputs;
    operands[0] = graph.node(moved).outputs[i];
    ASSIGN_OR_RETURN(const ValueId floats, AddInferred(graph, DequantizeLinearOp::kName,
                                                       std::move(operands), dequantize.attributes));
    Replace(graph, node.outputs[i], floats);
  }
  return true;
}

absl::StatusOr<bool> JoinConcat(Graph& graph, const Node& quantize) {
  const Node* producer = graph.ProducerIf(quantize.inputs[QuantizeLinearOp::kX], ConcatOp::kName);
  if (producer == nullptr || OnlyUser(graph, quantize.inputs[QuantizeLinearOp::kX]) == kNone)
    return false;
  const Node concat = *producer;
  std::vector<ValueId> inputs;
  for (const ValueId input : concat.inputs) {
    ASSIGN_OR_RETURN(inputs.emplace_back(), AsByteFunction(graph, quantize, input));
    if (inputs.back() == kNone) return false;
  }
  ASSIGN_OR_RETURN(const ValueId bytes, AddInferred(graph, concat.op, std::move(inputs),
                                                    concat.attributes, concat.name));
  RETURN_IF_ERROR(ReplaceSteps(graph, quantize, bytes));
  return true;
}

}  // namespace reprise
