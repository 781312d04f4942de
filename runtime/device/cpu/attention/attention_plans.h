// Plans of attention over rows.
#pragma once

#include <vector>

#include "runtime/device/cpu/plan/kernel_family.h"
#include "runtime/device/cpu/plan/plan.h"

namespace reprise::cpu {

// Returns the kernel family that this folder offers a device.
KernelFamily AttentionFamily();

// plan_attention.cc
std::vector<Candidate> PlanAttention(const CpuTarget& target, const NodeView& node);

// plan_relative.cc: by the distance of two positions, over rows or packed tokens
std::vector<Candidate> PlanRelativeAttention(const CpuTarget& target, const NodeView& node);

}  // namespace reprise::cpu
