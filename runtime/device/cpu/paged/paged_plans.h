// Plans of ops that read and write pages of caches.
#pragma once

#include <vector>

#include "runtime/device/cpu/plan/kernel_family.h"
#include "runtime/device/cpu/plan/plan.h"

namespace reprise::cpu {

// Returns the kernel family that this folder offers a device.
KernelFamily PagedFamily();

// plan_cross.cc
std::vector<Candidate> PlanPagedCrossAttention(const CpuTarget& target, const NodeView& node);
// plan_paged.cc
std::vector<Candidate> PlanPagedAttention(const CpuTarget& target, const NodeView& node);

}  // namespace reprise::cpu
