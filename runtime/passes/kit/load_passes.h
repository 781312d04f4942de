// The load passes of a model that has a budget.
#pragma once

#include "absl/status/status.h"
#include "runtime/base/load_budget.h"
#include "runtime/graph/node.h"
#include "runtime/passes/kit/pass.h"

namespace reprise {

// RunLoadPasses (see pass.h), or RESOURCE_EXHAUSTED with the pass or node at which `budget` had no
// time left.
absl::Status RunLoadPassesWithin(Graph& graph, const LoadBudget& budget,
                                 const PipelineOptions& options = {});

}  // namespace reprise
