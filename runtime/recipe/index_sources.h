// IndexSources: which input of a request an index comes from, so that one out of range is reported
// as that input's.
//
// Threads: pure.
#pragma once

#include <vector>

#include "runtime/graph/node.h"

namespace reprise {

// The source is one of several inputs that are text; which one is unknown.
inline constexpr int kSomeText = -2;

// Returns, for each operand of `node`, the index among the inputs of `graph` of the one from which
// it is computed; -1 where it holds no integers, or is not made from one input alone; kSomeText for
// an operand that the node looks up as text (attribute `text`).
std::vector<int> IndexSources(const Graph& graph, const Node& node);

}  // namespace reprise
