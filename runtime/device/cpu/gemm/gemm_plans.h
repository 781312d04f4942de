// Plans of float32, bfloat16 and mixed matrix products, and the prepare steps of their weights.
#pragma once

#include "runtime/device/cpu/plan/kernel_family.h"
#include "runtime/device/cpu/plan/plan.h"

namespace reprise::cpu {

// Returns the kernel family that this folder offers a device.
KernelFamily GemmFamily();

// plan_det.cc
Plan PlanDet;

// plan_linear.cc
Plan PlanLinear, PlanMatMul, PlanGemm;
// The prepare op of packed weights; see plan_linear.cc.
inline constexpr char kPackOp[] = "cpu.PackPanels";
Prepare RunPack;
// The prepare op of packed int8 weights: it takes the values, and their scales unless these are 1.
inline constexpr char kPackInt8Op[] = "cpu.PackInt8Panels";
Prepare RunPackInt8;

// The prepare op of packed weights that are stored in half; see plan_linear.cc.
inline constexpr char kPackHalfOp[] = "cpu.PackHalfPanels";
Prepare RunPackHalf;

// The prepare op of packed weights of a few bits: it takes the numbers, their scales, and their
// zero points unless a single one serves all; see plan_blocks.cc.
inline constexpr char kPackBlocksOp[] = "cpu.PackBlockPanels";
Prepare RunPackBlocks;

// The prepare op of packed bfloat16 weights; see plan_bf16.cc.
inline constexpr char kPackBf16Op[] = "cpu.PackBf16Panels";
Prepare RunPackBf16;

// The prepare op of convolution weights, packed by tiles of maps; see conv_prepare.h.
inline constexpr char kPackMapsOp[] = "cpu.PackMaps";
Prepare RunPackMaps;

// plan_half.cc
// Returns the parameter of float16 or bfloat16 that `floats` is the Cast of, or the same for the
// expression that it is joined, transposed, cut or reshaped from; null where it is none. With
// `narrowed` also where the model stores floats that a half holds
// (runtime/ops/weights/narrowed_weights.h).
ParameterExprPtr HalfOf(const ParameterExprPtr& floats, bool narrowed = false);
// Runs a Cast of a half to float32.
absl::StatusOr<Tensor> RunWiden(const CpuTarget& target, const Tensor& half);
// Returns the Cast to a half of floats that it holds.
absl::StatusOr<Tensor> RunNarrow(const CpuTarget& target, const Tensor& floats, DType half);

}  // namespace reprise::cpu
