// Steps of bytes that are the only reader of a reprise.IntegerConv become its result, the sum of
// two dequantised values that is quantised again becomes a reprise.IntegerAdd, a function of each
// byte by itself becomes a reprise.ByteTable, and nodes that only move floats that were bytes move
// these (byte_moves), so that a chain of quantised nodes hands on bytes. A reprise.IntegerLinear
// keeps its floats: its few rows are quantised as fast by a pass of their own.
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/quantized/byte_op.h"
#include "runtime/ops/quantized/integer_conv_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/match/activation_match.h"
#include "runtime/passes/quantized/byte_function.h"
#include "runtime/passes/quantized/byte_moves.h"
#include "runtime/passes/quantized/byte_scale.h"
#include "runtime/passes/quantized/quantized_passes.h"

namespace reprise {
namespace {

// Index of a reprise.IntegerConv's input: the scale of the result, in front of its zero point.
constexpr size_t kResultScale = IntegerConvOp::kYScale;

// Returns the steps of a convolution's result.
absl::StatusOr<bool> JoinConv(Graph& graph, const Node& node, const ByteScale& to) {
  const NodeId producer = ProducerOf(graph, node.inputs[0]);
  if (producer == kNone || OnlyUser(graph, node.inputs[0]) == kNone) return false;
  const Node conv = graph.node(producer);
  if (conv.op != IntegerConvOp::kName || conv.input(kResultScale) != kNone) return false;
  std::vector<ValueId> inputs = conv.inputs;
  inputs.resize(kResultScale, kNone);
  inputs.push_back(to.scale);
  inputs.push_back(ZeroPoint(graph, to));
  ASSIGN_OR_RETURN(const ValueId bytes,
                   AddInferred(graph, conv.op, std::move(inputs), conv.attributes, conv.name));
  RETURN_IF_ERROR(ReplaceSteps(graph, node, bytes));
  return true;
}

// Returns the steps of a sum, with an activation in between or without.
absl::StatusOr<bool> JoinAdd(Graph& graph, const Node& node, const ByteScale& to) {
  ValueId value = node.inputs[0];
  Attributes attributes = NamedActivation("none");
  NodeId add = OnlyUser(graph, value) == kNone ? kNone : ProducerOf(graph, value);
  if (add == kNone) return false;
  if (const auto activation = ActivationOf(graph, graph.node(add)); activation.has_value()) {
    attributes = *activation;
    value = graph.node(add).inputs[0];
    add = OnlyUser(graph, value) == kNone ? kNone : ProducerOf(graph, value);
    if (add == kNone) return false;
  }
  if (graph.node(add).op != AddOp::kName || !IsFloat32(graph, value)) return false;
  const std::vector<ValueId> sides = graph.node(add).inputs;
  if (!SameShape(graph, sides[0], sides[1])) return false;
  ValueId a, b;
  const auto from_a = Dequantised(graph, sides[0], a), from_b = Dequantised(graph, sides[1], b);
  if (!from_a.has_value() || !from_b.has_value()) return false;
  std::vector<ValueId> inputs = {a, b, from_a->scale, from_b->scale, to.scale};
  for (const ByteScale& scale : {*from_a, *from_b, to}) {
    inputs.push_back(ZeroPoint(graph, scale));
  }
  ASSIGN_OR_RETURN(const ValueId bytes, AddInferred(graph, IntegerAddOp::kName, std::move(inputs),
                                                    std::move(attributes)));
  RETURN_IF_ERROR(ReplaceSteps(graph, node, bytes));
  return true;
}

// Joins the steps of a function of one byte.
absl::StatusOr<bool> JoinTable(Graph& graph, const Node& node, const ByteScale&) {
  ASSIGN_OR_RETURN(const ValueId bytes, AsByteFunction(graph, node, node.inputs[0]));
  if (bytes == kNone) return false;
  RETURN_IF_ERROR(ReplaceSteps(graph, node, bytes));
  return true;
}

// Joins the steps of concatenated values.
absl::StatusOr<bool> JoinParts(Graph& graph, const Node& node, const ByteScale&) {
  return JoinConcat(graph, node);
}

absl::StatusOr<bool> FuseRequantizeAt(Graph& graph, NodeId id) {
  const Node node = graph.node(id);  // Adding nodes moves the others.
  ASSIGN_OR_RETURN(const bool moved, MoveBytes(graph, node));
  if (moved) return true;
  const std::optional<ByteScale> to = QuantisesTo(graph, node);
  if (!to.has_value()) return false;
  for (const auto join : {JoinConv, JoinAdd, JoinTable, JoinParts}) {
    ASSIGN_OR_RETURN(const bool joined, join(graph, node, *to));
    if (joined) return true;
  }
  return false;
}

}  // namespace

std::unique_ptr<Pass> FuseRequantize() { return PassOfNodes("fuse_requantize", FuseRequantizeAt); }

}  // namespace reprise
