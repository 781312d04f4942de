// If, with the values that both branches compute as operands.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// If(condition, results of the first branch..., of the second...). The importer puts the nodes of
// both branches around it; specialising takes one and drops the other (passes/kit/branches.h), so
// that no recipe holds this op.
Rule IfRule;
Kernel IfKernel;

}  // namespace reprise::ops
