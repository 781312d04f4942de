// IndexSources: which input of a request an index comes from, so that one out of range is reported
// as that input's.
//
// Threads: pure.
#pragma once

#include <vector>

#include "runtime/graph/graph.h"

namespace reprise {

// For each operand of `node` the position among the inputs of `graph` of the one that it is
// computed from; -1 where it holds no integers, or is not made from one input alone.
std::vector<int> IndexSources(const Graph& graph, const Node& node);

}  // namespace reprise
