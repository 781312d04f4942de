// Verify: the invariants every pass may rely on and must keep.
#pragma once

#include "absl/status/status.h"
#include "runtime/graph/node.h"

namespace reprise {

// Checks that every use has a definition, use lists agree with operands, names are unique, nodes
// are in topological order, outputs exist; with `specialized`, also that every value has a dtype
// and a constant shape. INTERNAL naming the node or value otherwise.
absl::Status Verify(const Graph& graph, bool specialized);

}  // namespace reprise
