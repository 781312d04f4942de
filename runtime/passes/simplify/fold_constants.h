// The pass `fold_constants` (see simplify_passes.h) of a load that has a budget.
#pragma once

#include <memory>

#include "runtime/base/load_budget.h"
#include "runtime/passes/kit/pass.h"

namespace reprise {

// It ends with RESOURCE_EXHAUSTED at the node where `budget` has no time left; null: any time.
std::unique_ptr<Pass> FoldConstantsWithin(const LoadBudget* budget);

}  // namespace reprise
