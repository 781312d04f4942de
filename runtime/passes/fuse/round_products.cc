#include "absl/algorithm/container.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/kit/precision.h"
#include "runtime/ops/products/matmul_op.h"
#include "runtime/passes/fuse/fuse_passes.h"

namespace reprise {
namespace {

// Whether it is a product of float32 rows and a weight matrix, which every bfloat16 kernel takes.
bool IsProductOfWeights(const Graph& graph, const Node& node) {
  if (FactsOf(node.op).rounding != Rounding::kProduct) return false;
  if (GemmOp::From(node.attributes).trans_a) return false;
  const Value& weights = graph.value(node.inputs[1]);
  return weights.kind == Value::Kind::kParameter && weights.dtype == DType::kFloat32 &&
         weights.shape.has_value() && weights.shape->size() == 2 &&
         NumElements(*weights.shape) >= kMinParameterElements;
}

// A node that multiplies a parameter, in any form.
bool MultipliesWeights(const Graph& graph, const Node& node) {
  if (!FactsOf(node.op).Is(kMultipliesWeights)) return false;
  return absl::c_any_of(node.inputs, [&](ValueId input) {
    return input != kNone && graph.value(input).kind == Value::Kind::kParameter;
  });
}

bool IsAttention(const Node& node) { return FactsOf(node.op).rounding == Rounding::kAttention; }

class RoundProductsPass : public Pass {
 public:
  absl::string_view name() const override { return "round_products"; }

  absl::StatusOr<bool> Run(Graph& graph) const override {
    bool changed = false;
    for (const NodeId id : graph.NodeIds()) {
      Node& node = graph.node(id);
      if (node.removed || (!IsProductOfWeights(graph, node) && !IsAttention(node))) continue;
      node.attributes.Set(kPrecisionAttribute, std::string(PrecisionName(Precision::kBf16)));
      changed = true;
    }
    return changed;
  }
};

}  // namespace

std::unique_ptr<Pass> RoundProducts() { return std::make_unique<RoundProductsPass>(); }

RoundedProducts CountRoundedProducts(const Graph& graph) {
  RoundedProducts count;
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    if (node.removed) continue;
    const bool rounded =
        node.attributes.String(kPrecisionAttribute, "") == PrecisionName(Precision::kBf16);
    if (IsAttention(node)) count.attentions += rounded;
    if (!MultipliesWeights(graph, node)) continue;
    ++count.all;
    count.rounded += rounded;
  }
  return count;
}

}  // namespace reprise
