// CheckLoops: whether what a file declares of the bodies of its Loops and Scans fits the values
// that they are given and result in. No recipe is made of a body before there is a request, which
// would be the first to be told otherwise.
#pragma once

#include "absl/status/status.h"
#include "runtime/graph/node.h"

namespace reprise {

// INVALID_ARGUMENT naming node, value and both dtypes, or axis and rank; what cannot be known
// before there is data is let through. `graph` is compact.
absl::Status CheckLoops(const Graph& graph);

}  // namespace reprise
