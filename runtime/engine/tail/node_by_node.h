// RunNodeByNode: a graph without cuts, computed by reference kernels one node after another.
//
// Nodes run as their results are asked for: the branch of an If that is not taken may fail.
//
// Threads: pure, but for what its callers give.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "runtime/graph/node.h"
#include "runtime/graph/tensor.h"

namespace reprise {

class Graph;

// Returns the element of `value`, called `name`, that decides the next step of `node`.
absl::StatusOr<int64_t> OneElement(const Node& node, const std::string& name, const Tensor& value,
                                   DType dtype);

// Returns the value of an input or a parameter.
using GivenValue = absl::FunctionRef<absl::StatusOr<Tensor>(const Value&)>;
// Returns the results of a node. `names`: of its inputs.
using EvaluateNode = absl::FunctionRef<absl::StatusOr<std::vector<Tensor>>(
    const Node& node, const std::vector<std::optional<Tensor>>& inputs,
    const std::vector<std::string>& names)>;

// Returns the outputs of `graph`, or the first error of `given` or `evaluate`.
absl::StatusOr<std::vector<Tensor>> RunNodeByNode(const Graph& graph, GivenValue given,
                                                  EvaluateNode evaluate);

}  // namespace reprise
