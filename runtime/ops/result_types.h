// ResultTypes: the dtypes of a graph's values while shapes are not known, behind a node whose sizes
// are those of data, say. With shapes the rules of the op table say the same (InferNode).
#pragma once

#include <vector>

#include "runtime/graph/graph.h"

namespace reprise {

// By value; kUndefined where it cannot be known: behind an input without a dtype, or an If whose
// branches differ. `graph` is compact.
std::vector<DType> ResultTypes(const Graph& graph);

}  // namespace reprise
