#include "runtime/engine/graph_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/verifier.h"
#include "runtime/ops/kit/op.h"

namespace reprise {

absl::StatusOr<ImportedModel> ModelOfGraph(Graph graph, std::vector<Tensor> parameters) {
  if (graph.outputs().empty()) return absl::InvalidArgumentError("the graph has no output");
  if (!graph.Compact()) return absl::InvalidArgumentError("the graph has a cycle");
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    if (FindOp(node.op) == nullptr) {
      return absl::UnimplementedError(absl::StrCat(
          NodeLabel(node), ": there is no such op; RegisterOp brings one of your own"));
    }
  }
  RETURN_IF_ERROR(Verify(graph, /*specialized=*/false));
  ImportedModel model = {.parameters = std::move(parameters),
                         .vocabulary = std::make_shared<const Vocabulary>(),
                         .producer = "a program"};
  for (const ValueId id : graph.inputs()) {
    const Value& value = graph.value(id);
    if (value.dtype == DType::kUndefined) {
      return absl::InvalidArgumentError(absl::StrCat("input '", value.name, "' has no dtype"));
    }
    model.inputs.push_back({.name = value.name, .dtype = value.dtype, .dims = value.dims});
  }
  for (const ValueId id : graph.outputs()) {
    model.outputs.push_back({.name = graph.value(id).name, .dtype = graph.value(id).dtype});
  }
  model.graph = std::move(graph);
  return model;
}

}  // namespace reprise
