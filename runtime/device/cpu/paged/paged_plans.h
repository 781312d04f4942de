// Plans of ops that read and write pages of caches.
#pragma once

#include "runtime/device/cpu/plan/kernel_family.h"
#include "runtime/device/cpu/plan/plan.h"

namespace reprise::cpu {

// Returns the kernel family that this folder offers a device.
KernelFamily PagedFamily();

// plan_paged.cc
Plan PlanPagedAttention;
Plan PlanPagedCrossAttention;

}  // namespace reprise::cpu
