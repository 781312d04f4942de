// FindDataValues: which values of a model hang on what its inputs hold, beyond their sizes.
//
// Threads: pure.
#pragma once

#include <set>

#include "runtime/graph/graph.h"

namespace reprise {

// Inputs among them. What is made of sizes alone, as a table of positions is, is not.
std::set<ValueId> FindDataValues(const Graph& graph);

}  // namespace reprise
