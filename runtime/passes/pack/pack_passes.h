// The capture pass among the files that treat packed tokens.
//
// One factory each; pipeline.cc holds the order in which they run. A rewrite fires only where it is
// known to keep the answers: shapes, dtypes, the values of constants and the number of uses are
// checked, and near matches of the pattern stay as they are. On a symbolic graph, rewrites that
// need shapes do nothing.
#pragma once

#include <memory>

#include "runtime/passes/kit/pass.h"

namespace reprise {

// Restricts nodes that compute many positions, of which a few are picked, to these. It runs
// after all passes that join nodes: they would join again the nodes that it splits.
std::unique_ptr<Pass> HoistPicks();

}  // namespace reprise
