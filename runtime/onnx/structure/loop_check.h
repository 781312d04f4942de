// CheckLoops: whether the declarations of a file for the bodies of its Loops and Scans fit the
// values that they are given and result in. No recipe is made of a body before there is a
// request, which would otherwise be the first to fail.
#pragma once

#include "absl/status/status.h"
#include "runtime/graph/node.h"

namespace reprise {

// INVALID_ARGUMENT naming node, value and both dtypes, or axis and rank; conditions that only
// data decides are not checked. `graph` is compact.
absl::Status CheckLoops(const Graph& graph);

}  // namespace reprise
