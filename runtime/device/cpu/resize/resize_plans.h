// Plans of planes that are sampled at other positions.
#pragma once

#include <cstdint>

#include "runtime/device/cpu/plan/kernel_family.h"
#include "runtime/device/cpu/plan/plan.h"

namespace reprise::cpu {

// The elements of a plane around a place, which linear sampling reads.
inline constexpr int64_t kCorners = 4;

// Returns the kernel family that this folder offers a device.
KernelFamily ResizeFamily();

// plan_resize.cc
Plan PlanResize;

// plan_deform.cc: the elements that the windows of a deformable convolution read
Plan PlanDeformColumns;

// plan_grid_sample.cc
Plan PlanGridSample;

}  // namespace reprise::cpu
