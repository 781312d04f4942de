// IsMaskInput: which integer inputs of a model hold ones and zeros alone, as its clients know.
//
// A model need not say so: positions counted by a mask are looked up in a table, so that larger
// numbers are refused, as with ids. What is no mask for a person is none here: an input named so,
// or one that is added up along the tokens and never looked up itself.
//
// HotDepth: how many ids a model tells apart that makes ones among zeros of them. It takes others
// too, without an error that would tell a range.
//
// IsLengthInput: which hold how long each row is, to a recurrent layer or to ReverseSequence.
//
// Threads: pure.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/graph/node.h"

namespace reprise {

bool IsMaskInput(const Graph& graph, ValueId input);
bool IsLengthInput(const Graph& graph, ValueId input);

// Returns the largest depth of a OneHot that takes the input as its ids; nullopt: none does, or it
// is computed.
std::optional<int64_t> HotDepth(const Graph& graph, ValueId input);

}  // namespace reprise
