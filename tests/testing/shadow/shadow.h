// Compares the shapes that a reading of a graph finds with the results of specialising it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/passes/specialize/specialize.h"

namespace reprise {

// Counts of comparisons, over all calls.
struct ShadowCounts {
  int64_t readings = 0;
  int64_t within = 0;   // sizes other than a reading's own, in its region
  int64_t outside = 0;  // read again
  int64_t refused = 0;  // neither takes these sizes
  int64_t shapes = 0;   // shapes that were equal
  int64_t numbers = 0;  // elements that were equal
  int64_t unknown = 0;  // constants that specialising finds and a reading does not
  std::string ToString() const;
};

// Reads `graph` at the first binding, and compares it at all of them: shapes and known elements of
// every value, and whether the sizes are taken. Sizes of another region are read again. Returns "",
// or the difference.
std::string ShadowDifference(const Graph& graph, const std::vector<Binding>& bindings,
                             ShadowCounts& counts);

// Returns `graph` with an axis in place of each dim of its inputs that is 2 or more, and the sizes
// that they were: sizes in the file do not matter then.
Graph WithAxesFor(const Graph& graph, std::map<std::string, int64_t>& sizes);

}  // namespace reprise
