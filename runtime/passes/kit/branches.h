// Branches of `If` nodes, while their conditions are being found out.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/graph/node.h"

namespace reprise {

// Returns whether some nodes of `graph` may belong to a branch that is not taken: operands that do
// not fit are no error there.
bool HasBranches(const Graph& graph);

// Returns the condition of node `id`, an If, if it is known: nullptr, or one element.
const Tensor* KnownCondition(const Graph& graph, NodeId id);

// Returns the operands of node `id`, an If, that it results in under `condition`, in the order of
// outputs.
std::vector<ValueId> BranchTaken(const Graph& graph, NodeId id, bool condition);

// Replaces uses of the results of node `id`, an If, by uses of the results of the branch taken.
void TakeBranch(Graph& graph, NodeId id, bool condition);

}  // namespace reprise
