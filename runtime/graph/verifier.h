// Verify: the invariants every pass may rely on and must keep.
#pragma once

#include "absl/status/status.h"
#include "runtime/graph/graph.h"

namespace reprise {

// Every use has a definition, use lists agree with operands, names are unique, nodes are in
// topological order, outputs exist. INTERNAL naming the node or value otherwise. With
// `specialized`, also that every value has a dtype and a constant shape.
absl::Status Verify(const Graph& graph, bool specialized);

}  // namespace reprise
