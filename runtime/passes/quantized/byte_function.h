// The function that a part of a graph applies to each byte, as a table of its results.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/graph/node.h"

namespace reprise {

// Returns the bytes that `quantize`, a QuantizeLinear or reprise.FakeQuantize to bytes, would make
// of `floats`, as a function of the bytes that these are computed from: reprise.ByteTable of these,
// or these themselves where none would change. kNone where `floats` depend on anything else than
// dequantised bytes, element by element, and known numbers, or a scale is not known.
absl::StatusOr<ValueId> AsByteFunction(Graph& graph, const Node& quantize, ValueId floats);

}  // namespace reprise
