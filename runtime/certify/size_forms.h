// FormThatFollowsSize: where what a node makes of its operands may be another thing at another
// size, though no number that the model computes says so.
//
// A Squeeze without axes drops the dims that are 1. A Slice ends where its data end, if that is
// before it would. A Reshape takes 0 and -1 for something else than a size, a Pad of no width does
// nothing, and a Gather whose place follows a size takes another position at each. A walk at a few
// sizes (axis_flow.h) sees one of these, and what it finds along another axis holds for that one.
//
// A form that is not known is taken to follow the size: asking again at another one costs little.
//
// Threads: pure.
#pragma once

#include "absl/strings/string_view.h"
#include "runtime/certify/size_facts.h"

namespace reprise {

// A Squeeze without axes.
bool DropsDimsOfOne(const Node& node);

// Nodes that may have such a form are in the model.
bool MayHoldSizeForms(const Graph& graph);

// "drops the dims that are 1"; empty where the node has one form at all sizes of the axis that
// `facts` ask for. What sizes decide of numbers (SizeUse::kSteps and more) is not looked at.
absl::string_view FormThatFollowsSize(const SizeFacts& facts, const Node& node);

}  // namespace reprise
