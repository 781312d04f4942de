#include <limits>

#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/quantized/quantize_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/simplify/rules.h"

namespace reprise {
namespace {

constexpr int kMaxMoves = 8;

// Returns whether one known scale holds for all, and tells every number of steps from the next.
bool HasPlainScale(const Graph& graph, const Node& node) {
  if (!IsFloat32(graph, node.input(1)) || node.attributes.Int("block_size", 0) != 0) return false;
  const std::optional<double> scale = KnownScalar(graph, node.inputs[1]);
  constexpr double kMostSteps = 1 << 16;
  return scale.has_value() && *scale > std::numeric_limits<float>::min() &&
         *scale < std::numeric_limits<float>::max() / kMostSteps;
}

// Only moves the elements of its first operand about.
bool MovesElements(const Node& node) {
  return node.op == ReshapeOp::kName || node.op == TransposeOp::kName;
}

// Returns the integers that `floats` came from, if they are in the steps that `quantize`
// makes: where elements were moved since, in `moves` from the last one upwards.
ValueId SameSteps(const Graph& graph, const Node& quantize, std::vector<NodeId>& moves) {
  ValueId value = quantize.inputs[0];
  for (int step = 0; step <= kMaxMoves; ++step) {
    const NodeId producer = ProducerOf(graph, value);
    if (producer == kNone) return kNone;
    const Node& node = graph.node(producer);
    if (MovesElements(node)) {
      moves.push_back(producer);
      value = node.inputs[0];
      continue;
    }
    const bool undoes = node.op == DequantizeLinearOp::kName &&
                        node.inputs[1] == quantize.inputs[1] &&
                        node.input(2) == quantize.input(2) && HasPlainScale(graph, node) &&
                        graph.value(node.inputs[0]).dtype == graph.value(quantize.outputs[0]).dtype;
    return undoes && ShapeOf(graph, value).has_value() ? node.inputs[0] : kNone;
  }
  return kNone;
}

// QuantizeLinear of the result of a DequantizeLinear with the same steps is the integers as they
// were.
absl::StatusOr<ValueId> UndoneQuantize(Graph& graph, const Node& quantize) {
  std::vector<NodeId> moves;
  ValueId value = SameSteps(graph, quantize, moves);
  if (value == kNone) return kNone;
  for (auto move = moves.rbegin(); move != moves.rend(); ++move) {
    const Node node = graph.node(*move);
    std::vector<ValueId> inputs = node.inputs;
    inputs[0] = value;
    ASSIGN_OR_RETURN(value, AddInferred(graph, node.op, std::move(inputs), node.attributes));
  }
  return value;
}

}  // namespace

absl::StatusOr<ValueId> QuantizeRule(Graph& graph, NodeId id) {
  const Node node = graph.node(id);
  return node.op == QuantizeLinearOp::kName ? UndoneQuantize(graph, node) : kNone;
}

}  // namespace reprise
