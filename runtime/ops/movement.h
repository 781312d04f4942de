// Ops that move whole blocks of elements: Transpose, Concat, Split, Slice, Expand, Tile, Pad,
// Trilu.
#pragma once

#include "runtime/ops/infer.h"

namespace reprise::ops {

Rule TransposeRule, ConcatRule, SplitRule, SliceRule, ExpandRule, TileRule, PadRule, TriluRule;
Kernel TransposeKernel, ConcatKernel, SplitKernel, SliceKernel, ExpandKernel, TileKernel, PadKernel,
    TriluKernel;

}  // namespace reprise::ops
