// The lines of the text form one by one, for people: see text.h.
#pragma once

#include <string>

#include "runtime/graph/text.h"

namespace reprise {

// Tensors of more elements are printed as their number and a digest, `{512 elements, 1f0c…}`: such
// a line is not parsed. Negative: all elements are printed.
inline constexpr int64_t kAllElements = -1;

// Returns the line of a node, or of an input, parameter or constant, as Print has it: without its
// indentation, of more than one line where an attribute is a graph.
std::string PrintNode(const Graph& graph, NodeId node, int64_t most_elements = kAllElements);
std::string PrintValue(const Graph& graph, ValueId value, int64_t most_elements = kAllElements);

}  // namespace reprise
