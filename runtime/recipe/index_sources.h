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

struct IndexSource {
  // The index among the inputs of the graph of the one from which an operand is computed; -1 where
  // it holds no integers, or is not made from one input alone; kSomeText for an operand that the
  // node looks up as text (attribute `text`).
  int input = -1;
  bool moved = false;  // its elements are elements of that input, in other places at most

  friend bool operator==(const IndexSource&, const IndexSource&) = default;
};

// Returns the source of each operand of `node`.
std::vector<IndexSource> IndexSources(const Graph& graph, const Node& node);

}  // namespace reprise
