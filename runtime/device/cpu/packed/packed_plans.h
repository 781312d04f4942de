// Plans of ops over the segments of packed tokens.
#pragma once

#include <cstdint>

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
Plan PlanSegmentAttention, PlanSegmentReduce, PlanSegmentSpread, PlanSegmentCumSum;
// plan_segment_pick.cc
Plan PlanSegmentPlace, PlanSegmentPick;

}  // namespace reprise::cpu
