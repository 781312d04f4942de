// DeriveSizeFlow: how a number that an op makes of sizes hangs on the size of the axis.
//
// Threads: pure.
#pragma once

#include "runtime/certify/size_facts.h"

namespace reprise {

// The flow of a result of the node `id`, all of whose operands are made of sizes and constants (or
// whose op is Shape or Size). A result that no rule knows is taken as chosen by the size.
SizeFlow DeriveSizeFlow(const SizeFacts& facts, NodeId id, ValueId output);

}  // namespace reprise
