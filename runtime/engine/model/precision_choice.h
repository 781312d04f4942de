// PrecisionChoice: which nodes of a model round, as it was chosen while the model was loaded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/shape.h"
#include "runtime/ops/kit/precision.h"

namespace reprise {

struct PrecisionChoice {
  // A node that could round.
  struct Node {
    std::string name;
    Precision precision = Precision::kExact;
    // Known where the choice was measured, and not read from the store.
    std::string op;
    Shape result;
    // 1 minus the least cosine where this node rounds alone, to the precision that it was tried
    // with first; negative: not measured.
    double loss = -1;
    int64_t exact_ns = 0, chosen_ns = 0;  // its time in a run, as it is and as chosen
  };
  std::vector<Node> nodes;  // ordered as in the graph
  double cosine = 1;        // the least one of the calibration
  int requests = 0;         // the number of requests of the calibration
  bool made_up = false;     // they were
};

}  // namespace reprise
