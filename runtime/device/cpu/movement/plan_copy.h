// Copies of an operand with any strides: the common form of all ops that only move elements.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "runtime/device/cpu/plan/plan.h"

namespace reprise::cpu {

// Copies input 0 of `node`, from its element `offset` on, to its dense output, whose elements are
// seen as `shape`; each dim has a stride in elements of the input. Gives nothing where the walk has
// too many dims, or elements have a size that is not copied.
std::vector<Candidate> PlanCopy(const CpuTarget& target, const NodeView& node,
                                absl::Span<const int64_t> shape, const Shape& strides,
                                int64_t offset);

}  // namespace reprise::cpu
