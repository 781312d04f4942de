// Copies of an operand with any strides: what every op comes down to that only moves elements.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "runtime/device/cpu/plan/plan.h"

namespace reprise::cpu {

// Input 0 of `node`, from its element `offset` on, as its output: dense, of the output's elements
// seen as `shape`, each dim of which has a stride (elements of the input). Nothing where the walk
// has too many dims, or elements of no size that is copied.
std::vector<Candidate> PlanCopy(const CpuTarget& target, const NodeView& node,
                                absl::Span<const int64_t> shape, const Shape& strides,
                                int64_t offset);

}  // namespace reprise::cpu
