// ScaleByRequest: values quantised by the range of a whole tensor get the range of their request.
//
// DynamicQuantizeLinear takes one scale from all elements of its operand: in a model with a batch
// axis these are all that a replay holds. Each becomes reprise.SegmentDynamicQuantizeLinear, which
// gives the same numbers for a request alone, but one for each line: results that depend on them
// broadcast. Where requests lie one after another (pack_tokens.h) each then has its own scale.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/node.h"

namespace reprise {

// Returns the labels of the nodes that it replaced; none: `graph` is as it was.
std::vector<std::string> ScaleByRequest(Graph& graph);

// Such a node is in the graph.
bool HasRequestScales(const Graph& graph);

}  // namespace reprise
