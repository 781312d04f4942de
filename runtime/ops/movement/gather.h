// Ops that read or write at positions given by data. An index out of range is reported and index 0
// used in its place; negative indices count from the end, as ONNX says.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

Rule GatherRule, GatherElementsRule, GatherNDRule, ScatterElementsRule, ScatterNDRule, OneHotRule;
Kernel GatherKernel, GatherElementsKernel, GatherNDKernel, ScatterElementsKernel, ScatterNDKernel,
    OneHotKernel;

// reprise.CheckRange(x) {low, high}: x, but `low` for each element outside [low, high], which is
// reported: for an op that takes fewer ids than the ops that replace it.
Kernel CheckRangeKernel;

// reprise.EmbeddingSum(table0, ids0, table1, ids1, ...): the sum over i of table_i[ids_i], the ids'
// shapes broadcast.
Rule EmbeddingSumRule;
Kernel EmbeddingSumKernel;

}  // namespace reprise::ops
