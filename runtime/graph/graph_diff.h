// DiffGraphs: the differences of two graphs, in words, the first cause first.
//
//   constant 1 of Clip 'clip': 0.5, was 0.7
//   MatMul 'fc' has 33 columns, was 32
//   attribute axis of Softmax 'probabilities': 1, was -1
//   Relu 'act' is new, after Conv 'conv1'
//   input 'x': f32[batch, 33], was f32[batch, 32]
//
// A cause comes before its consequences: inputs of the graph, then nodes in their order, then
// outputs. The names of values do not count as differences, nor does the number of a parameter's
// initialiser.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/node.h"
#include "runtime/graph/node_match.h"

namespace reprise {

struct GraphDiff {
  std::vector<std::string> causes;  // empty: the graphs are the same but for names
  std::vector<NodePair> nodes;      // side by side
  std::vector<bool> differs;        // indexed like `nodes`: a cause was reported for the pair
};

GraphDiff DiffGraphs(const Graph& was, const Graph& now);

// Returns the first of `causes` and how many more there are, for one line of a log; empty where
// there is none.
std::string FirstCause(const std::vector<std::string>& causes);

}  // namespace reprise
