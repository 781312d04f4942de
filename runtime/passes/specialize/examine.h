// Examine: Specialize for a graph that is not known to be sound: goes on after a node that is
// refused, so that every refusal is found in one walk.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/graph/node.h"

namespace reprise {

struct NodeRefusal {
  NodeId node = kNone;
  absl::Status why;
};

// Tells the type of a value that the walk cannot know by itself, from elsewhere: fills in dtype and
// dims and returns true. Dims are read under the walk's sizes.
using DeclaredType =
    std::function<bool(const std::string& name, DType& dtype, std::vector<Dim>& dims)>;

// Walks `graph`, whose nodes are in topological order, at `axes` (symbol -> size). Values get dtype
// and shape where they can be known; a node with an operand that stays unknown is passed over.
std::vector<NodeRefusal> Examine(Graph& graph, const std::map<std::string, int64_t>& axes,
                                 const DeclaredType& declared);

}  // namespace reprise
