// ProofSubject: the model whose padding is proved, as far as proofs look at it.
//
// Ownership: borrows what it refers to, which outlives the proofs. While axes are measured their
// certificates change (AxisMeasurement): each belongs to the thread that measures it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/certify/probe.h"
#include "runtime/graph/node.h"
#include "runtime/verify/model_axis.h"
#include "runtime/verify/output_shapes.h"

namespace reprise {

struct ProofSubject {
  const Graph& graph;  // as it is after the load passes
  const std::vector<ModelAxis>& axes;
  const std::vector<OutputShape>& output_shapes;  // empty while they are not fitted
  int batch_axis = -1;                            // position in `axes`
  std::vector<ProbeInput> inputs;                 // those of the graph, in its order
  std::vector<std::string> outputs;               // names, by position
  std::map<std::string, double> fills;            // what padding holds, by input; 0 where not named
  std::set<std::string> no_padding;               // labels of axes that are never padded
  bool confirm_later = false;                     // long sizes may be measured behind readiness
  int64_t parameter_bytes = 0;
  std::function<void(const std::string&)> log;  // a line about the model
};

}  // namespace reprise
