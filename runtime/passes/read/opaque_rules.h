// Terms for results of which no rule says the elements: a product of two tables, a running sum.
//
// They tell which sizes the elements follow, and give no numbers.
#pragma once

#include "runtime/passes/read/element_rules.h"

namespace reprise {

// Returns result `context.result`, whose operands are all known. It follows a size where an operand
// does, and where an axis that operands grow along has a say in elements that were there before, as
// the facts of the op (Growth) tell.
KnownValue OpaqueResult(const ElementContext& context);

}  // namespace reprise
