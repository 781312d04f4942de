// FoldNode: evaluating a node at compile time.
//
// Shared by Specialize, which folds on its walk, and by the passes, which fold what their rewrites
// make constant.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/graph/graph.h"

namespace reprise {

// When every input of `node` is a constant (and not overridable), or the op looks at shapes alone
// and those are known, its results become constants, and true is returned. False, with the graph
// as it was, when something is not known, when the op must not be folded, or when a result would
// take more than `max_bytes`. INVALID_ARGUMENT when the operands are wrong.
absl::StatusOr<bool> FoldNode(Graph& graph, NodeId node, int64_t max_bytes);

}  // namespace reprise
