// The capture pass among the files that treat packed tokens.
//
// One factory each; pipeline.cc holds the order in which they run. A rewrite fires only where it is
// known to keep the answers: shapes, dtypes, the values of constants and the number of uses are
// checked, and what is nearly the pattern stays as it is. On a symbolic graph, rewrites that need
// shapes do nothing.
#pragma once

#include <memory>

#include "runtime/passes/kit/pass.h"

namespace reprise {

// Nodes that compute many positions of which a few are picked compute these alone. It runs after
// all passes that join nodes: they would join again what it takes apart.
std::unique_ptr<Pass> HoistPicks();

}  // namespace reprise
