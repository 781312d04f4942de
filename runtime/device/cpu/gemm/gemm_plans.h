// Plans of float32, bfloat16 and mixed matrix products, and the prepare steps of their weights.
#pragma once

#include <vector>

#include "runtime/device/cpu/plan/kernel_family.h"
#include "runtime/device/cpu/plan/plan.h"

namespace reprise::cpu {

// Returns the kernel family that this folder offers a device.
KernelFamily GemmFamily();

// plan_det.cc
std::vector<Candidate> PlanDet(const CpuTarget& target, const NodeView& node);

// plan_linear.cc
std::vector<Candidate> PlanLinear(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanMatMul(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanGemm(const CpuTarget& target, const NodeView& node);
// The prepare op of packed weights; see plan_linear.cc.
inline constexpr char kPackOp[] = "cpu.PackPanels";
absl::StatusOr<Tensor> RunPack(const CpuTarget& target, const Attributes& attributes,
                               const Tensor& weights, WeightMemory& memory);
// The prepare op of packed int8 weights: it takes the values, and their scales unless these are 1.
inline constexpr char kPackInt8Op[] = "cpu.PackInt8Panels";
absl::StatusOr<Tensor> RunPackInt8(const CpuTarget& target, const Attributes& attributes,
                                   const Tensor& values, const Tensor* scales,
                                   WeightMemory& memory);

// The prepare op of packed weights that are stored in half; see plan_linear.cc.
inline constexpr char kPackHalfOp[] = "cpu.PackHalfPanels";
absl::StatusOr<Tensor> RunPackHalf(const CpuTarget& target, const Attributes& attributes,
                                   const Tensor& halves, WeightMemory& memory);

// The prepare op of packed weights of a few bits: it takes the numbers, their scales, and their
// zero points unless a single one serves all; see plan_blocks.cc.
inline constexpr char kPackBlocksOp[] = "cpu.PackBlockPanels";
absl::StatusOr<Tensor> RunPackBlocks(const CpuTarget& target, const Attributes& attributes,
                                     const Tensor& numbers, const Tensor& scales,
                                     const Tensor* points, WeightMemory& memory);

// The prepare op of packed bfloat16 weights; see plan_bf16.cc.
inline constexpr char kPackBf16Op[] = "cpu.PackBf16Panels";
absl::StatusOr<Tensor> RunPackBf16(const CpuTarget& target, const Attributes& attributes,
                                   const Tensor& values, const Tensor* scales,
                                   WeightMemory& memory);

// The prepare op of convolution weights, packed by tiles of maps; see conv_prepare.h.
inline constexpr char kPackMapsOp[] = "cpu.PackMaps";
absl::StatusOr<Tensor> RunPackMaps(const CpuTarget& target, const Attributes& attributes,
                                   const Tensor& weights, WeightMemory& memory);

// plan_half.cc
// Returns the parameter of float16 or bfloat16 that `floats` is the Cast of, or the same for the
// expression that it is joined, transposed, cut or reshaped from; null where it is none. With
// `narrowed` also where the model stores floats that a half holds
// (runtime/ops/weights/narrowed_weights.h).
ParameterExprPtr HalfOf(const ParameterExprPtr& floats, bool narrowed = false);
// A Cast of a half to float32.
absl::StatusOr<Tensor> RunWiden(const CpuTarget& target, const Tensor& half);
// Returns the Cast to a half of floats that it holds.
absl::StatusOr<Tensor> RunNarrow(const CpuTarget& target, const Tensor& floats, DType half);

}  // namespace reprise::cpu
