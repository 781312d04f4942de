// CutGraph: a graph in pieces that can each be specialised once the data in front of them is there.
//
// Each stage is a section, which is a graph without cuts, then the nodes at the cuts, which run one
// by one. Pieces hand each other values by the names that they have in the graph. Values that
// specialising knows are not handed over: every piece that needs them computes them again from the
// shapes of its inputs, so that a shape, or a mask made of shapes, is always the request's and
// never a padded replay's. A few numbers of shapes that a piece computes with (the height to which
// boxes are clipped) are handed over as elements, so that it does not depend on those shapes.
//
// Ownership: shared between models and their runs. Threads: immutable.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/graph/held_graph.h"
#include "runtime/graph/node.h"
#include "runtime/graph/parameter_expr.h"
#include "runtime/passes/cut/cuts.h"

namespace reprise {

struct GraphSection {
  std::string label;  // shown to people: "after NonZero 'nonzero_1'"; the first section's is empty
  // Its inputs have the names of the whole graph's values. The first section has all inputs of the
  // whole graph, as they are declared; later ones get dtypes and dims with their values.
  HeldGraph graph;
  std::set<std::string> shape_inputs;  // the values of these are part of the binding
  std::set<std::string> shape_only;    // the elements of these are never read
  std::vector<std::string> outputs;    // named as in graph.outputs(), in the same order
  // Its nodes move, choose, compare or add up elements: no products, no layers. On little data it
  // takes less time node by node than a recipe of it takes to make.
  bool is_light = false;
};

struct CutGraph;

// The body of a Loop. Its results are the condition, carried values, scanned ones.
struct LoopBody {
  std::shared_ptr<const CutGraph> graph;
  // The body's names for the values that an iteration begins with: its number, the condition,
  // the carried values. A name is empty where the body does not read it.
  std::vector<std::string> begins_with;
  size_t carried = 0;  // values
  struct Scanned {
    int64_t axis = 0;        // the dim of the result that counts the iterations
    bool backwards = false;  // the last one comes first
    // The type of one iteration's result, as the file declares it; 0 for a dim that it leaves open.
    DType dtype = DType::kUndefined;
    Shape shape;
  };
  std::vector<Scanned> scanned;
};

// A node that runs by itself. A name is empty where an operand or result is left out.
struct EagerNode {
  Node node;  // op, name, attributes, and as many inputs and outputs as there are names
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  // If: the only input is the condition; the branches give the results.
  std::shared_ptr<const CutGraph> then_branch;
  std::shared_ptr<const CutGraph> else_branch;
  // Loop: the inputs are the trip count, the condition, and the carried values.
  std::shared_ptr<const LoopBody> body;
  bool is_cut = false;  // else: a value that specialising knows, for a cut or an output
};

struct CutGraph {
  struct Stage {
    GraphSection section;  // a section without outputs has nothing to run
    std::vector<EagerNode> nodes;
  };
  std::vector<Stage> stages;
  std::vector<std::string> outputs;
  // Constants and parameters that eager nodes and outputs use.
  std::map<std::string, Tensor> constants;
  std::map<std::string, ParameterExprPtr> parameters;
  std::vector<Cut> cuts;  // shown to people; includes cuts in branches and bodies
};

// Returns nullptr where `graph` has no cut. See FindCuts.
std::shared_ptr<const CutGraph> CutAtData(const Graph& graph,
                                          const std::set<std::string>& shape_inputs,
                                          const CutWishes& wishes = {});

}  // namespace reprise
