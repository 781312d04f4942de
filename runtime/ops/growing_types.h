// GrowingTypes: ResultTypes of a graph that grows, as one does while a file is read. A node is
// looked at once, however often the dtypes are asked for.
#pragma once

#include <vector>

#include "runtime/graph/graph.h"

namespace reprise {

// Threads: one at a time.
class GrowingTypes {
 public:
  // By value of `graph` as it is now, as ResultTypes says them. The same graph at each call, to
  // which nodes and values were added alone, behind what they use; the dtypes of inputs and
  // constants stay. Valid until the next call.
  const std::vector<DType>& Of(const Graph& graph);

 private:
  std::vector<DType> types_;
  NodeId next_ = 0;  // the first node that was not looked at
};

}  // namespace reprise
