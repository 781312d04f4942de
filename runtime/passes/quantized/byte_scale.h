// Values that stand for floats in steps of bytes, and nodes that quantise them with one scale.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "runtime/graph/node.h"

namespace reprise {

// One scale for all of a value of bytes.
struct ByteScale {
  ValueId scale = kNone;
  ValueId zero = kNone;  // kNone: 0
  DType dtype = DType::kUndefined;
};

// Returns the scale to which a QuantizeLinear or reprise.FakeQuantize quantises floats; empty
// unless the results are bytes of one scale.
std::optional<ByteScale> QuantisesTo(const Graph& graph, const Node& node);

// Returns, where `value` comes from bytes with one scale, the scale of the DequantizeLinear, and in
// `bytes` the bytes, which stays as it was where there is none.
std::optional<ByteScale> Dequantised(const Graph& graph, ValueId value, ValueId& bytes);

// Returns its zero point, a constant 0 of its dtype where it has none.
ValueId ZeroPoint(Graph& graph, const ByteScale& scale);

// Returns whether it is one positive known scale, with which finite steps stay finite: the largest
// byte is the largest float.
bool KeepsOrder(const Graph& graph, const ByteScale& scale);

// Replaces the result of `node`, a QuantizeLinear or reprise.FakeQuantize, by `bytes`.
absl::Status ReplaceSteps(Graph& graph, const Node& node, ValueId bytes);

}  // namespace reprise
