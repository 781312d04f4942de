// The three projections of one attention, over the same rows and with weights of equal shapes,
// become one reprise.Linear whose columns are [q, k, v].
#include "runtime/base/status_macros.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rewrite.h"

namespace reprise {
namespace {

struct Projections {
  const Node* nodes[3];
  ValueId x;
  int64_t rows;     // of a weight
  int64_t columns;  // of a weight
};

std::optional<Projections> MatchProjections(const Graph& graph, const Node& attention) {
  if (attention.op != "reprise.Attention" || attention.attributes.Int("packed_qkv", 0) != 0) {
    return std::nullopt;
  }
  Projections found{};
  for (int i = 0; i < 3; ++i) {
    const ValueId value = attention.inputs[i];
    const Node* linear = graph.ProducerIf(value, "reprise.Linear");
    if (linear == nullptr || OnlyUser(graph, value) == kNone || linear->input(3) != kNone ||
        linear->attributes.String("activation", "none") != "none" ||
        !IsParameter(graph, linear->inputs[1]) ||
        (linear->input(2) != kNone && !IsWeight(graph, linear->inputs[2]))) {
      return std::nullopt;
    }
    if (i > 0 && (linear->inputs[0] != found.nodes[0]->inputs[0] ||
                  !SameShape(graph, linear->inputs[1], found.nodes[0]->inputs[1]))) {
      return std::nullopt;
    }
    found.nodes[i] = linear;
  }
  found.x = found.nodes[0]->inputs[0];
  found.rows = ShapeOf(graph, found.nodes[0]->inputs[1])->front();
  found.columns = ShapeOf(graph, found.nodes[0]->inputs[1])->back();
  return found;
}

class FuseQkvPass : public Pass {
 public:
  absl::string_view name() const override { return "fuse_qkv"; }

  absl::StatusOr<bool> Run(Graph& graph) const override {
    bool changed = false;
    for (NodeId id : graph.NodeIds()) {
      if (graph.node(id).removed) continue;
      const std::optional<Projections> match = MatchProjections(graph, graph.node(id));
      if (!match.has_value()) continue;
      RETURN_IF_ERROR(Rewrite(graph, id, *match));
      changed = true;
    }
    return changed;
  }

 private:
  // [q, k, v] biases in one; kNone when no projection has one.
  static absl::StatusOr<ValueId> PackedBias(Graph& graph, const std::vector<ValueId>& biases,
                                            int64_t columns) {
    std::vector<ValueId> parts;
    bool any = false;
    for (ValueId bias : biases) {
      any |= bias != kNone;
      parts.push_back(bias != kNone
                          ? bias
                          : graph.AddConstant("", Tensor::FromVector(DType::kFloat32, {columns},
                                                                     std::vector<float>(columns))));
    }
    if (!any) return kNone;
    return AddWeight(graph, "Concat", {{"axis", int64_t{0}}}, parts, DType::kFloat32,
                     {3 * columns});
  }

  static absl::Status Rewrite(Graph& graph, NodeId id, const Projections& match) {
    std::vector<ValueId> weights, biases;
    for (const Node* node : match.nodes) {
      weights.push_back(node->inputs[1]);
      biases.push_back(node->input(2));
    }
    const std::string name = match.nodes[0]->name;
    ASSIGN_OR_RETURN(const ValueId weight,
                     AddWeight(graph, "Concat", {{"axis", int64_t{1}}}, weights, DType::kFloat32,
                               {match.rows, 3 * match.columns}));
    ASSIGN_OR_RETURN(const ValueId bias, PackedBias(graph, biases, match.columns));
    std::vector<ValueId> inputs = {match.x, weight};
    if (bias != kNone) inputs.push_back(bias);
    ASSIGN_OR_RETURN(const ValueId packed,
                     AddInferred(graph, "reprise.Linear", std::move(inputs),
                                 {{"activation", std::string("none")}}, name));
    const Node attention = graph.node(id);
    Attributes attributes = attention.attributes;
    attributes.Set("packed_qkv", int64_t{1});
    inputs = {packed};
    if (attention.input(3) != kNone) inputs = {packed, kNone, kNone, attention.inputs[3]};
    ASSIGN_OR_RETURN(const ValueId fused, AddInferred(graph, "reprise.Attention", std::move(inputs),
                                                      std::move(attributes), attention.name));
    Replace(graph, attention.outputs[0], fused);
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Pass> FuseQkv() { return std::make_unique<FuseQkvPass>(); }

}  // namespace reprise
