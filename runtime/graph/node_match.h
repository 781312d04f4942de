// MatchNodes: which node of one graph stands for which node of another.
//
// Nodes are told apart by their form: op, attributes, kinds and types of their operands. Names come
// second, since exporters number them again when a node is added. Equal beginnings and ends are
// matched first, then nodes whose form is there once on either side; nodes between two matches are
// paired by op and name.
#pragma once

#include <utility>
#include <vector>

#include "runtime/graph/node.h"

namespace reprise {

// A row of two graphs side by side: a node of each, or kNone where only one has it.
struct NodePair {
  NodeId was = kNone;
  NodeId now = kNone;
};

// Returns all nodes of both, in an order that keeps the order of each. Takes time in proportion to
// their number, and to its square only within stretches of at most some hundred nodes.
std::vector<NodePair> MatchNodes(const Graph& was, const Graph& now);

}  // namespace reprise
