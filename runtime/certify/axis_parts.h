// Constants whose positions lie in lines, as dims that became one have them: the places of a grid,
// one row of pixels after another, those of a coarser grid behind them.
//
// Threads: pure.
#pragma once

#include <optional>

#include "runtime/graph/tensor.h"
#include "runtime/ops/axis/axis_rule.h"

namespace reprise {

// Reads a constant at both sizes of `context`: its positions, where they lie as the positions of a
// value that the walk has met, and every position holds the same at both sizes. nullopt: they do
// not.
std::optional<AxisFlowValue> FlowInParts(const Tensor& small, const Tensor& large,
                                         const AxisContext& context);

}  // namespace reprise
