// Plans of ops that work element by element or row by row: functions of one and two operands,
// conversions, normalisations, softmax, reductions, argmax and top-k.
#pragma once

#include <vector>

#include "runtime/device/cpu/plan/kernel_family.h"
#include "runtime/device/cpu/plan/plan.h"

namespace reprise::cpu {

// Returns the kernel family that this folder offers a device.
KernelFamily ElementwiseFamily();

// plan_elementwise.cc: float32
std::vector<Candidate> PlanUnary(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanGelu(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanBinary(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanPow(const CpuTarget& target, const NodeView& node);
// Clip and the functions with constants.
std::vector<Candidate> PlanShaped(const CpuTarget& target, const NodeView& node);

// plan_typed.cc: other dtypes, comparisons, logic,
// Cast between any two dtypes and Where of any
std::vector<Candidate> PlanTypedMath(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanCompare(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanLogic(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanSpecial(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanCast(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanWhere(const CpuTarget& target, const NodeView& node);

// plan_rows.cc
std::vector<Candidate> PlanLayerNorm(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanRmsNorm(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanAddLayerNorm(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanRotary(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanSoftmax(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanReduce(const CpuTarget& target, const NodeView& node);

// plan_channel_norm.cc
std::vector<Candidate> PlanChannelNorm(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanGlobalAverage(const CpuTarget& target, const NodeView& node);

// plan_topk.cc
std::vector<Candidate> PlanTopK(const CpuTarget& target, const NodeView& node);

// plan_arg_extremes.cc
std::vector<Candidate> PlanPlaces(const CpuTarget& target, const NodeView& node);

}  // namespace reprise::cpu
