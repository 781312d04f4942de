// FindMixing: where the positions along an axis meet in a model, read from its ops.
//
// The static part of the padding certificate. The model, specialised at two sizes of the axis, is
// walked in step by the axis rules of the op table (ops/axis/axis_rule.h). A node that lets one
// position see another is where padding could change an answer:
//
//   proved     no position sees the padding past the end, or its contents count for nothing there:
//              zeros in a sum, minus infinity in a softmax
//   undecided  the rules do not know whether positions meet
//   mixes      positions meet
//
// Threads: pure.
#pragma once

#include <string>

#include "runtime/ops/axis/axis_rule.h"

namespace reprise {

// `small` and `large` are one model, specialised at bindings that differ along the axis alone; best
// at sizes that nothing else has. Where their nodes differ in kind the answer is undecided.
AxisFinding FindMixing(const Graph& small, const Graph& large, const AxisFlowOptions& options);

// "node '/pool/ReduceMean' (ReduceMean) averages over sequence".
std::string MixingWords(const AxisFinding& finding);

}  // namespace reprise
