// Plans of attention over rows.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/device/cpu/plan/kernel_family.h"
#include "runtime/device/cpu/plan/plan.h"

namespace reprise::cpu {

// Returns the kernel family that this folder offers a device.
KernelFamily AttentionFamily();

// A mask that is right-aligned to [batch, heads, queries, keys].
struct AttentionMask {
  bool is_bool = false;
  int64_t batch = 0, head = 0, query = 0;  // elements to the next one, 0 where it is shared
};

// plan_attention.cc
Plan PlanAttention;
// Returns how `input`, a mask, lies; nullopt where its keys, of which there are `keys`, are
// broadcast.
std::optional<AttentionMask> MaskOf(const NodeView& node, size_t input, int64_t keys);

// plan_relative.cc: by the distance of two positions, over rows or packed tokens
Plan PlanRelativeAttention;

}  // namespace reprise::cpu
