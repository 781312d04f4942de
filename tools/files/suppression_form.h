// NonMaxSuppression as rounds of nodes of fixed size: each takes the best box that is left, and
// leaves out those that it covers.
#pragma once

#include <cstdint>
#include <string>

#include "tools/files/node_maker.h"

namespace reprise::cli {

// Names of values.
struct FoundBoxes {
  std::string rows;  // [batch * classes * rounds, 3]: batch, class, box
  std::string mask;  // a round has found one
};

// Adds the nodes of `rounds` rounds, which is at least 1.
FoundBoxes MakeSuppression(const onnx::NodeProto& node, int64_t rounds, NodeMaker& maker);

}  // namespace reprise::cli
