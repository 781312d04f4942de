// ProofSubject: the model whose padding is proved, as far as proofs look at it.
//
// Ownership: borrows what it refers to, which outlives the proofs. While axes are looked at their
// certificates change: each belongs to the thread that looks at it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/graph/node.h"
#include "runtime/verify/model_axis.h"
#include "runtime/verify/output_shapes.h"

namespace reprise {

struct ProofInput {
  std::string name;
  DType dtype = DType::kUndefined;
  std::vector<Dim> dims;  // symbols are merged already
  bool live = false;      // says which positions are the request's: ones wherever no padding is
};

struct ProofSubject {
  const Graph& graph;  // as it is after the load passes
  const std::vector<ModelAxis>& axes;
  const std::vector<OutputShape>& output_shapes;  // empty while they are not fitted
  int batch_axis = -1;                            // position in `axes`
  std::vector<ProofInput> inputs;                 // those of the graph, in its order
  std::vector<std::string> outputs;               // names, by position
  std::map<std::string, double> fills;            // what padding holds, by input; 0 where not named
  std::set<std::string> no_padding;               // labels of axes that are never padded
};

}  // namespace reprise
