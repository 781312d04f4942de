// Plans of ops that work element by element or row by row: functions of one and two operands,
// conversions, normalisations, softmax, reductions, argmax and top-k.
#pragma once

#include "runtime/device/cpu/plan/kernel_family.h"
#include "runtime/device/cpu/plan/plan.h"

namespace reprise::cpu {

// Returns the kernel family that this folder offers a device.
KernelFamily ElementwiseFamily();

// plan_elementwise.cc: float32
Plan PlanUnary, PlanGelu, PlanBinary, PlanPow;
// Clip and the functions with constants.
Plan PlanShaped;

// plan_typed.cc: other dtypes, comparisons, logic,
// Cast between any two dtypes and Where of any
Plan PlanTypedMath, PlanCompare, PlanLogic, PlanSpecial, PlanCast, PlanWhere;

// plan_rows.cc
Plan PlanLayerNorm, PlanRmsNorm, PlanAddLayerNorm, PlanRotary, PlanSoftmax, PlanReduce;

// plan_channel_norm.cc
Plan PlanChannelNorm, PlanGlobalAverage;

// plan_topk.cc
Plan PlanTopK;

// plan_arg_extremes.cc
Plan PlanPlaces;

}  // namespace reprise::cpu
