// UnevenConstants: numbers made of sizes whose elements need not all be equal.
//
// At one size of each axis such a table may happen to hold one number alone: places compared with
// 30 where there are 5. A walk at these sizes must not take it for a table that is made of one
// number, as Expand and ConstantOfShape make them.
//
// Threads: pure.
#pragma once

#include "runtime/graph/node.h"
#include "runtime/ops/axis/uneven_tables.h"

namespace reprise {

// By their names in the symbolic model, which its specialised graphs keep.
UnevenTables UnevenConstants(const Graph& symbolic);

}  // namespace reprise
