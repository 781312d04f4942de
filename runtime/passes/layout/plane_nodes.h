// Which nodes take and give float planes with their channels after the batch or last, and how they
// are turned from the one to the other. See choose_layouts.cc for which are.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "runtime/graph/node.h"
#include "runtime/passes/layout/plane_costs.h"

namespace reprise {

struct PlaneNode {
  enum class Kind { kConv, kElementwise, kAverage, kPool, kParts, kReshape, kFill };
  Kind kind;
  PlaneCosts costs;  // set for a convolution; others take the same time either way
};

// Planes of one or two dims, not empty.
bool IsPlanes(const Graph& graph, ValueId value);

// Returns the node; nullopt: it takes one layout alone.
std::optional<PlaneNode> PlaneNodeOf(const Graph& graph, const Node& node);

// Rewrites the node for planes whose channels lie last. `node`: a copy, since adding nodes moves
// them.
absl::Status TurnPlaneNode(Graph& graph, const Node& node, const PlaneNode& what);

}  // namespace reprise
