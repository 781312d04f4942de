#include "absl/algorithm/container.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/attention/relative_attention_op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/kit/precision.h"
#include "runtime/ops/products/matmul_op.h"
#include "runtime/ops/products/round_rows.h"
#include "runtime/ops/weights/quantized_weights.h"
#include "runtime/ops/weights/rounded_weights.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "runtime/passes/kit/precision_rules.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {
namespace {

// Returns whether it is a product of float32 rows and a weight matrix, which every kernel that
// rounds takes.
bool IsProductOfWeights(const Graph& graph, const Node& node) {
  if (FactsOf(node.op).rounding != Rounding::kProduct) return false;
  if (GemmOp::From(node.attributes).trans_a) return false;
  const Value& weights = graph.value(node.inputs[1]);
  return weights.kind == Value::Kind::kParameter && weights.dtype == DType::kFloat32 &&
         weights.shape.has_value() && weights.shape->size() == 2 &&
         NumElements(*weights.shape) >= kMinParameterElements;
}

// Returns whether a node multiplies a parameter, in any form.
bool MultipliesWeights(const Graph& graph, const Node& node) {
  if (!FactsOf(node.op).Is(kMultipliesWeights)) return false;
  return absl::c_any_of(node.inputs, [&](ValueId input) {
    return input != kNone && graph.value(input).kind == Value::Kind::kParameter;
  });
}

bool IsAttention(const Node& node) { return FactsOf(node.op).rounding == Rounding::kAttention; }

void Mark(Node& node, Precision precision) {
  node.attributes.Set(kPrecisionAttribute, std::string(PrecisionName(precision)));
}

// Marks a product to round its rows for weights in blocks of `block`, or by column with 0; false
// where no kernel could.
bool RoundRows(Node& node, const Shape& weights, int64_t axis, int64_t block) {
  if (weights[static_cast<size_t>(1 - axis)] > ops::kDeepestRounded) return false;
  if (block > 0) {
    const int64_t length = ops::RoundedBlockOf(block);
    if (length == 0) return false;
    node.attributes.Set(kRoundedBlockAttribute, length);
  }
  Mark(node, Precision::kInt8);
  return true;
}

bool RoundProduct(Graph& graph, NodeId id, Precision precision, WeightBits weights) {
  const int64_t axis = GemmOp::From(graph.node(id).attributes).trans_b ? 0 : 1;
  const ParameterExprPtr stored = graph.value(graph.node(id).inputs[1]).parameter;
  const int64_t block = ops::StoredBlockOf(stored, axis);
  const bool floats = block == 0 && !ops::SplitQuantized(stored, axis).has_value();
  WeightBits form = floats ? weights : WeightBits::kStored;
  if (precision == Precision::kInt8) {
    if (floats && form == WeightBits::kStored) form = WeightBits::kInt8;
    if (!RoundRows(graph.node(id), *graph.value(graph.node(id).inputs[1]).shape, axis,
                   form == WeightBits::kInt4 ? ops::kNibbleBlock : block)) {
      return false;
    }
  } else if (precision != Precision::kExact) {
    Mark(graph.node(id), precision);
  }
  if (form != WeightBits::kStored) {
    const ValueId rounded = AddExpression(graph, ops::RoundedWeights(stored, axis, form));
    graph.SetInput(id, 1, rounded);
  }
  return precision != Precision::kExact || form != WeightBits::kStored;
}

absl::StatusOr<bool> RoundAt(Graph& graph, NodeId id, Precision precision, WeightBits weights) {
  if (IsProductOfWeights(graph, graph.node(id))) return RoundProduct(graph, id, precision, weights);
  if (precision == Precision::kExact) return false;
  if (IsAttention(graph.node(id))) {
    Mark(graph.node(id), Precision::kBf16);
    return true;
  }
  if (graph.node(id).op != RelativeAttentionOp::kName) return false;
  // It stays exact, and keeps the promise of equal bits.
  graph.node(id).attributes.Set("one_order", int64_t{1});
  return true;
}

}  // namespace

std::unique_ptr<Pass> RoundProducts() { return RoundProductsAs({}); }

std::unique_ptr<Pass> RoundProductsAs(const PipelineOptions& options) {
  return PassOfNodes("round_products", [precision = options.precision, nodes = options.nodes,
                                        weights = options.weights](Graph& graph, NodeId id) {
    return RoundAt(graph, id, nodes == nullptr ? precision : nodes->Of(graph.node(id)), weights);
  });
}

RoundedProducts CountRoundedProducts(const Graph& graph) {
  RoundedProducts count;
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    if (node.removed) continue;
    const std::optional<Precision> precision =
        ParsePrecision(node.attributes.String(kPrecisionAttribute, ""));
    if (IsAttention(node)) count.attentions += precision.has_value();
    if (!MultipliesWeights(graph, node)) continue;
    ++count.all;
    count.rounded += precision.has_value();
    if (precision.has_value()) ++count.by_precision[static_cast<size_t>(*precision)];
  }
  return count;
}

}  // namespace reprise
