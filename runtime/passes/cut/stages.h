// FindStages: in which stage of a cut graph each value is made.
//
// A cut ends a stage: its results are there in the next one. A stage is ended as well where layers
// follow nodes that pick, join or align elements by data (Gather, ScatterElements, RoiAlign). Data
// decide how many elements these have, and a kernel for each number of them is soon prepared. A
// recipe of the layers is padded to few sizes then, since nothing else of the data is left in it.
//
// Likewise a model that resizes a picture before its layers: no size of the picture can be padded
// there, since a Resize that samples between positions sees all of it. `splits_front` makes the
// first stage empty: the nodes in front of the layers, the layers that slide windows, and the nodes
// after these are stages of their own, and the layers can be padded.
//
// Threads: pure.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/node.h"
#include "runtime/passes/cut/cuts.h"

namespace reprise {

struct CutStages {
  std::vector<int> of;              // one a value; 0: the front
  std::vector<std::string> labels;  // one a stage, for people: "after NonZero 'nonzero_1'"
};

CutStages FindStages(const Graph& graph, const CutAnalysis& analysis, bool splits_front);

// Returns whether `graph`, as cut by `analysis`, resizes data in front of its first layers.
bool ResizesInFront(const Graph& graph, const CutAnalysis& analysis);

// Returns whether a section of such nodes alone is worth no recipe.
bool IsLight(const Node& node);

}  // namespace reprise
