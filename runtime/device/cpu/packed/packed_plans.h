// Plans of ops over the segments of packed tokens.
#pragma once

#include <vector>

#include "runtime/device/cpu/plan/kernel_family.h"
#include "runtime/device/cpu/plan/plan.h"

namespace reprise::cpu {

// The kernel family that this folder offers a device.
KernelFamily PackedFamily();

// plan_segment.cc: packed tokens
std::vector<Candidate> PlanSegmentAttention(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanSegmentReduce(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanSegmentSpread(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanSegmentCumSum(const CpuTarget& target, const NodeView& node);
// plan_segment_pick.cc
std::vector<Candidate> PlanSegmentPlace(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanSegmentPick(const CpuTarget& target, const NodeView& node);

}  // namespace reprise::cpu
