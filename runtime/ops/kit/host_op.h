// Ops from outside, as the op table and those who read it see them. See ops/custom/registered_op.h.
#pragma once

#include "absl/strings/string_view.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"

namespace reprise {

// The trait of an op that runs on the host, between recipes: graphs are cut at it.
inline constexpr auto kHost = static_cast<OpTrait>(1u << 7);

// The row of an op that was registered, or nullptr. FindOp asks here for what the table lacks.
const OpRow* FindRegisteredOp(absl::string_view name);
// Its facts; nullptr for a row that is none of these.
const OpFacts* FactsOfRegistered(const OpRow& row);

}  // namespace reprise
