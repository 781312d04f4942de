// Ops that move whole blocks of elements: Transpose, Concat, Split, Expand, Tile, Trilu.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

Rule TransposeRule, ConcatRule, SplitRule, ExpandRule, TileRule, TriluRule;
Kernel TransposeKernel, ConcatKernel, SplitKernel, ExpandKernel, TileKernel, TriluKernel;

}  // namespace reprise::ops
