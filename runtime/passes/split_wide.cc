#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/op.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rewrite.h"

namespace reprise {
namespace {

ValueId Ints(Graph& graph, std::vector<int64_t> values) {
  return graph.AddConstant("", Tensor::Int64s(std::move(values)));
}

// Runs of pieces are joined, then what came of them.
absl::StatusOr<ValueId> JoinInRuns(Graph& graph, std::vector<ValueId> pieces, int64_t axis,
                                   const std::string& name) {
  while (pieces.size() > kMostPieces) {
    std::vector<ValueId> joined;
    for (size_t begin = 0; begin < pieces.size(); begin += kMostPieces) {
      const size_t end = std::min(pieces.size(), begin + kMostPieces);
      ASSIGN_OR_RETURN(const ValueId run,
                       AddInferred(graph, "Concat", {pieces.begin() + begin, pieces.begin() + end},
                                   {{"axis", axis}}, name));
      joined.push_back(run);
    }
    pieces = std::move(joined);
  }
  return AddInferred(graph, "Concat", std::move(pieces), {{"axis", axis}}, name);
}

// A Slice for each run of outputs, which a Split of its own cuts up.
absl::Status SplitInRuns(Graph& graph, NodeId id) {
  const std::vector<ValueId> outputs = graph.node(id).outputs;
  const ValueId input = graph.node(id).inputs[0];
  const std::string name = graph.node(id).name;
  int64_t axis = graph.node(id).attributes.Int("axis", 0);
  if (axis < 0) axis += static_cast<int64_t>(ShapeOf(graph, input)->size());
  int64_t at = 0;
  for (size_t begin = 0; begin < outputs.size(); begin += kMostPieces) {
    const size_t end = std::min(outputs.size(), begin + kMostPieces);
    std::vector<int64_t> sizes;
    int64_t all = 0;
    for (size_t i = begin; i < end; ++i) {
      sizes.push_back((*ShapeOf(graph, outputs[i]))[axis]);
      all += sizes.back();
    }
    const ValueId from = Ints(graph, {at}), to = Ints(graph, {at + all}),
                  along = Ints(graph, {axis});
    ASSIGN_OR_RETURN(const ValueId run,
                     AddInferred(graph, "Slice", {input, from, to, along}, {}, name));
    at += all;
    const NodeId split =
        graph.AddNode("Split", {run, Ints(graph, sizes)}, {{"axis", axis}}, end - begin, name);
    RETURN_IF_ERROR(InferNode(graph, split));
    for (size_t i = begin; i < end; ++i) {
      Replace(graph, outputs[i], graph.node(split).outputs[i - begin]);
    }
  }
  return absl::OkStatus();
}

class SplitWidePass : public Pass {
 public:
  absl::string_view name() const override { return "split_wide"; }

  absl::StatusOr<bool> Run(Graph& graph) const override {
    bool changed = false;
    for (const NodeId id : graph.NodeIds()) {
      const Node& node = graph.node(id);
      if (node.op == "Concat" && node.inputs.size() > kMostPieces) {
        const ValueId output = node.outputs[0];
        ASSIGN_OR_RETURN(const ValueId joined,
                         JoinInRuns(graph, node.inputs, node.attributes.Int("axis", 0), node.name));
        Replace(graph, output, joined);
        changed = true;
      } else if (node.op == "Split" && node.outputs.size() > kMostPieces &&
                 !absl::c_linear_search(node.outputs, kNone)) {
        RETURN_IF_ERROR(SplitInRuns(graph, id));
        changed = true;
      }
    }
    return changed;
  }
};

}  // namespace

std::unique_ptr<Pass> SplitWide() { return std::make_unique<SplitWidePass>(); }

}  // namespace reprise
