// ModelOfGraph: a graph that a program has built, as a model that Engine::Load takes.
//
//   Graph graph;
//   const ValueId x = graph.AddInput("x", DType::kFloat32, {{.symbol = "batch"}, {.size = 64}});
//   const ValueId w = graph.AddParameter("w", ParameterExpr::Leaf(0, DType::kFloat32, {64, 10}));
//   const NodeId product = graph.AddNodeWithOutputs("MatMul", {x, w}, {}, {"y"}, "product");
//   graph.AddOutput(graph.node(product).outputs[0]);
//   ASSIGN_OR_RETURN(ImportedModel made, ModelOfGraph(std::move(graph), {weights}));
//   ASSIGN_OR_RETURN(auto model, engine.Load({.id = {"made"}}, std::move(made)));
//
// Its nodes are ops of the table (runtime/ops/kit/op.h) in their newest form, or registered ones.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/importer.h"

namespace reprise {

// Returns the model. `parameters`: the tensors that leaves of parameter expressions name by index.
// INVALID_ARGUMENT for a graph with a cycle, without outputs, or whose inputs lack a dtype;
// UNIMPLEMENTED naming a node whose op is unknown.
absl::StatusOr<ImportedModel> ModelOfGraph(Graph graph, std::vector<Tensor> parameters = {});

}  // namespace reprise
