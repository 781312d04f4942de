// GrowingTypes: ResultTypes of a graph that grows, as one does while a file is read. A node is
// looked at once, however often the dtypes are asked for.
#pragma once

#include <vector>

#include "runtime/graph/node.h"

namespace reprise {

// Threads: one at a time.
class GrowingTypes {
 public:
  // Returns the dtypes, indexed by value, of `graph` as it is now (see ResultTypes). Each call
  // passes the same graph, to which only nodes and values were appended since; the dtypes of inputs
  // and constants stay. Valid until the next call.
  const std::vector<DType>& Of(const Graph& graph);

 private:
  std::vector<DType> types_;
  NodeId next_ = 0;  // the first node that was not looked at
};

}  // namespace reprise
