// Ops from outside, as the op table and its readers see them. See ops/custom/registered_op.h.
#pragma once

#include "absl/strings/string_view.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"

namespace reprise {

// The trait of an op that runs on the host, between recipes: graphs are cut at it.
inline constexpr auto kHost = static_cast<OpTrait>(1u << 7);

// Returns the row of a registered op, or nullptr. FindOp asks here for ops that the table lacks.
const OpRow* FindRegisteredOp(absl::string_view name);
// Returns its facts; nullptr for a row that is none of these.
const OpFacts* FactsOfRegistered(const OpRow& row);

}  // namespace reprise
