// The value from which a shape is taken: of several values with one shape, the most accessible one.
#pragma once

#include "runtime/graph/node.h"

namespace reprise {

// Operand `i` of node `id`. Where its shape alone is asked for (Shape, Size): the value that it has
// its shape from, as far up as nodes change nothing but elements.
ValueId OperandOf(const Graph& graph, NodeId id, size_t i);

}  // namespace reprise
