// Plans of convolutions and pools of floats, and the prepare steps of their weights.
#pragma once

#include <vector>

#include "runtime/device/cpu/plan/kernel_family.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/ops/windows/windows.h"

namespace reprise::cpu {

// Returns the kernel family that this folder offers a device.
KernelFamily ConvFamily();

// plan_conv.cc
Plan PlanConv;

// plan_conv_transpose.cc
Plan PlanConvTranspose;
// The prepare step that splits its weights by the phases of its strides.
inline constexpr char kSplitPhasesOp[] = "cpu.SplitPhases";
Prepare RunSplitPhases;

// The prepare step that splits its weights and packs them; see plan_conv_transpose_nhwc.cc.
inline constexpr char kPackPhasesOp[] = "cpu.PackPhases";
Prepare RunPackPhases;

// plan_depthwise.cc: depthwise Conv and reprise.Conv, over planes of `spatial`.
std::vector<Candidate> PlanDepthwise(const CpuTarget& target, const NodeView& node,
                                     const ops::Windows& windows, const Shape& spatial);
// plan_depthwise_small.cc; the same for planes that are narrower than a vector
std::vector<Candidate> PlanDepthwiseChannels(const CpuTarget& target, const NodeView& node,
                                             const ops::Windows& windows, const Shape& spatial);

// plan_pool.cc
Plan PlanPool;

// The prepare step that packs transformed 3 x 3 kernels; see plan_conv_winograd.cc.
inline constexpr char kPackWinogradOp[] = "cpu.PackWinograd";
Prepare RunPackWinograd;

}  // namespace reprise::cpu
