// Interpret: runs a graph with the reference kernels, one node after another.
//
// Passes are checked against it: a graph before and after a pass must give the same answers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/graph.h"

namespace reprise {

// Returns the outputs of a specialised graph, in order. `inputs` by name; `parameters` by leaf
// index. INVALID_ARGUMENT when an input or parameter is missing or of another type.
absl::StatusOr<std::vector<Tensor>> Interpret(const Graph& graph,
                                              const std::map<std::string, Tensor>& inputs,
                                              absl::Span<const Tensor> parameters);

// Returns the value of a parameter expression.
absl::StatusOr<Tensor> EvaluateParameter(const ParameterExpr& expr,
                                         absl::Span<const Tensor> parameters);

// Returns the largest |a - b| over all elements, infinity when types or NaNs differ.
double LargestDifference(const Tensor& a, const Tensor& b);

}  // namespace reprise
