// FindSizeNumbers: the few numbers that a graph computes of shapes.
//
// A picture's height and width, which boxes are clipped to, are such. A section that takes them as
// elements of an input needs no recipe for each shape that they are computed from.
//
// Threads: pure.
#pragma once

#include <vector>

#include "runtime/graph/node.h"
#include "runtime/passes/cut/cuts.h"

namespace reprise {

// Returns by value whether it is computed of shapes and small constants alone, and has no more
// elements than these: no node on the way counts, fills or repeats.
std::vector<bool> FindSizeNumbers(const Graph& graph, const CutAnalysis& analysis);

}  // namespace reprise
