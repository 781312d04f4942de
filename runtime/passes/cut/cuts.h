// FindCuts: the nodes after which shapes are known only once there is data.
//
// A node is a cut when the elements of an operand decide the shape of its result (NonZero, the ends
// of a Slice, the bounds of a Range, the k of a TopK), or which of two branches runs (If), and that
// operand is made of data. A Loop always is one, and so is an op that runs on the host (kHost).
// Values that specialising turns into constants are no data: constants, shape inputs, shapes, and
// values computed from these alone.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "runtime/graph/node.h"
#include "runtime/passes/kit/node_choice.h"

namespace reprise {

// Cuts where data decide nothing.
struct CutWishes {
  bool everywhere = false;  // each node that computes on data is a cut
  NodeChoice chosen;        // and so are these
  // A picture that the model resizes in front of its layers has stages of its own (stages.h): no
  // request holds several of them.
  bool splits_front = false;
};

struct CutAnalysis {
  // By value: specialising knows its elements.
  std::vector<bool> is_static;
  // By node: it is a cut. An If is one, too, when a branch of it has a cut.
  std::vector<bool> is_cut;
  // By node: it belongs to the body of a Loop, since its result changes with the iteration.
  std::vector<bool> is_in_body;
  // By node: an output needs it whatever branches are taken. Nodes of a cut If's branch count only
  // where others need them too (where Ifs would be copied too often, also where both branches or
  // several Ifs do). Nodes of a Loop count where all iterations share them.
  std::vector<bool> is_needed;
  // By value: how many cuts lie in front of it, one after the other. 0 where is_needed does not
  // hold.
  std::vector<int> level;

  std::vector<bool> is_chosen;  // a node that CutWishes::chosen names
  bool is_everywhere = false;   // cuts are all nodes that compute on data

  // Returns the needed cuts, in the order of the graph.
  std::vector<NodeId> Cuts(const Graph& graph) const;
};

// `shape_inputs`: names of the inputs whose values are part of a binding. `graph` is compact, and
// its nodes are ops of the table. `is_body`: it is a Loop's body, where a Gather from an input is a
// cut, too, so that no recipe needs a copy of a value that all iterations share. `wishes`: nodes
// in loops and branches that they name are cut with these.
CutAnalysis FindCuts(const Graph& graph, const std::set<std::string>& shape_inputs,
                     bool is_body = false, const CutWishes& wishes = {});

// The nodes that a branch of a cut If, or the body of a Loop, computes by itself, and the values
// that it takes from around it; a body also takes results of its LoopStep.
struct BranchPart {
  std::vector<NodeId> nodes;      // topological order
  std::vector<ValueId> operands;  // inputs of the graph, results of other nodes; in ascending order
};
// `step`: the LoopStep of the body, whose results are operands; kNone for a branch.
BranchPart BranchBehind(const Graph& graph, const CutAnalysis& analysis,
                        const std::vector<ValueId>& results, NodeId step = kNone);

// Returns the values that node `id` needs to be at hand before it runs: for a cut If, what its
// branches read; for a Loop, what its body reads.
std::vector<ValueId> NeededBy(const Graph& graph, const CutAnalysis& analysis, NodeId id);

// A cut, for people.
struct Cut {
  std::string op;
  std::string node;  // its name, or the name of its first result
  std::string why;   // "the size of its result depends on the elements of 'mask' (input 'mask')"
  int level = 0;     // how many cuts lie in front of its operands, one after the other
};
Cut DescribeCut(const Graph& graph, const CutAnalysis& analysis, NodeId node);

}  // namespace reprise
