// The passes that keep the results of a graph and make it smaller: canonical forms, folding, and
// removal of nodes that are equal or unread.
//
// One factory each; pipeline.cc holds the order in which they run. A rewrite fires only where it is
// known to keep the answers: shapes, dtypes, the values of constants and the number of uses are
// checked, and near matches of the pattern stay as they are. On a symbolic graph, rewrites that
// need shapes do nothing.
#pragma once

#include <memory>

#include "runtime/passes/kit/pass.h"

namespace reprise {

// Values that a Loop hands unchanged from one iteration to the next leave the loop.
std::unique_ptr<Pass> LoopInvariants();
// Turns a Loop that finds how far a matrix's rows are from the rows of a table, one by
// one, into reprise.Distances.
std::unique_ptr<Pass> LoopDistances();
// Converts values of float16 and bfloat16 to float32, except for inputs and outputs of the graph.
std::unique_ptr<Pass> WidenHalf();
// Nodes over constants alone become constants.
std::unique_ptr<Pass> FoldConstants();
// Nodes over parameters (and constants) alone become parameter expressions. Symbolic graphs.
std::unique_ptr<Pass> PrepareParameters();
// Merges equal constants, equal parameter expressions and equal nodes.
std::unique_ptr<Pass> MergeCommon();
// Nodes that no output needs are removed.
std::unique_ptr<Pass> EliminateDead();
// Identities, no-op shape and arithmetic nodes go; views become Reshape; Expand moves to the end.
std::unique_ptr<Pass> Canonicalize();

}  // namespace reprise
