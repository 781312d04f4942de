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
std::vector<Candidate> PlanConv(const CpuTarget& target, const NodeView& node);

// plan_conv_transpose.cc
std::vector<Candidate> PlanConvTranspose(const CpuTarget& target, const NodeView& node);
// The prepare step that splits its weights by the phases of its strides.
inline constexpr char kSplitPhasesOp[] = "cpu.SplitPhases";
absl::StatusOr<Tensor> RunSplitPhases(const Attributes& attributes, const Tensor& weights,
                                      WeightMemory& memory);

// The prepare step that splits its weights and packs them; see plan_conv_transpose_nhwc.cc.
inline constexpr char kPackPhasesOp[] = "cpu.PackPhases";
absl::StatusOr<Tensor> RunPackPhases(const CpuTarget& target, const Attributes& attributes,
                                     const Tensor& weights, WeightMemory& memory);

// plan_depthwise.cc: depthwise Conv and reprise.Conv, over planes of `spatial`.
std::vector<Candidate> PlanDepthwise(const CpuTarget& target, const NodeView& node,
                                     const ops::Windows& windows, const Shape& spatial);
// plan_depthwise_small.cc; the same for planes that are narrower than a vector
std::vector<Candidate> PlanDepthwiseChannels(const CpuTarget& target, const NodeView& node,
                                             const ops::Windows& windows, const Shape& spatial);

// plan_pool.cc
std::vector<Candidate> PlanPool(const CpuTarget& target, const NodeView& node);

// The prepare step that packs transformed 3 x 3 kernels; see plan_conv_winograd.cc.
inline constexpr char kPackWinogradOp[] = "cpu.PackWinograd";
absl::StatusOr<Tensor> RunPackWinograd(const CpuTarget& target, const Attributes& attributes,
                                       const Tensor& weights, WeightMemory& memory);

}  // namespace reprise::cpu
