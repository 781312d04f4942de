// Plans of ops over the segments of packed tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "runtime/device/cpu/plan/kernel_family.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/graph/shape.h"

namespace reprise::cpu {

// Returns the kernel family that this folder offers a device.
KernelFamily PackedFamily();

// Returns the number of elements of a row of `shape`: of a token or a segment.
inline int64_t RowElements(const Shape& shape) {
  return NumElements(absl::MakeConstSpan(shape).subspan(1));
}

// plan_segment.cc: packed tokens
std::vector<Candidate> PlanSegmentAttention(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanSegmentReduce(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanSegmentSpread(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanSegmentCumSum(const CpuTarget& target, const NodeView& node);
// plan_segment_pick.cc
std::vector<Candidate> PlanSegmentPlace(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanSegmentPick(const CpuTarget& target, const NodeView& node);

}  // namespace reprise::cpu
