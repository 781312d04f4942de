// Plans of the models of ai.onnx.ml: trees, support vectors, distances, categories.
#pragma once

#include <vector>

#include "runtime/device/cpu/plan/kernel_family.h"
#include "runtime/device/cpu/plan/plan.h"

namespace reprise::cpu {

// Returns the kernel family that this folder offers a device.
KernelFamily ClassicalFamily();

// plan_forest.cc
std::vector<Candidate> PlanForest(const CpuTarget& target, const NodeView& node);
// plan_classic.cc: the other models of ai.onnx.ml
std::vector<Candidate> PlanClassScores(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanSvmScores(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanCategoryIndex(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanDistances(const CpuTarget& target, const NodeView& node);

}  // namespace reprise::cpu
