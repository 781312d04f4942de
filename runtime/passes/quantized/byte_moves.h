// Nodes that only move or choose floats which were bytes move the bytes.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/graph/node.h"

namespace reprise {

// Moves bytes where `node` only moves or chooses elements of one dequantised value, and its results
// go to other such nodes or are quantised again: it does so with the bytes, and its results are
// dequantised after it.
absl::StatusOr<bool> MoveBytes(Graph& graph, const Node& node);

// `quantize`, a QuantizeLinear or reprise.FakeQuantize, of values side by side, each of which is a
// function of bytes: these become steps before they are brought together.
absl::StatusOr<bool> JoinConcat(Graph& graph, const Node& quantize);

}  // namespace reprise
