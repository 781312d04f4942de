// FindMixing: where the positions along an axis meet in a model, read from its ops.
//
// The static part of the padding certificate. The model, specialised at two sizes of the axis, is
// walked in step by the axis rules of the op table (ops/axis/axis_rule.h). A node that lets one
// position see another is where padding could change an answer:
//
//   proved     no position sees the padding behind it, or what it sees there counts for nothing:
//              zeros in a sum, a huge negative number in a softmax
//   undecided  positions meet, perhaps under a mask; whether it is good enough, or whether the rule
//              merely does not know, is for the measurement to say
//   mixes      positions meet and no mask has a say
//
// Threads: pure.
#pragma once

#include <string>

#include "runtime/ops/axis/axis_rule.h"

namespace reprise {

// `small` and `large` are one model, specialised at bindings that differ along the axis alone; best
// at sizes that nothing else has. Where their nodes differ in kind the answer is undecided.
AxisFinding FindMixing(const Graph& small, const Graph& large, const AxisFlowOptions& options);

// "node '/pool/ReduceMean' (ReduceMean) averages over sequence without a mask".
std::string MixingWords(const AxisFinding& finding);

}  // namespace reprise
