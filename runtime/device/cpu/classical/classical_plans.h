// Plans of the models of ai.onnx.ml: trees, support vectors, distances, categories.
#pragma once

#include "runtime/device/cpu/plan/kernel_family.h"
#include "runtime/device/cpu/plan/plan.h"

namespace reprise::cpu {

// Returns the kernel family that this folder offers a device.
KernelFamily ClassicalFamily();

// plan_forest.cc
Plan PlanForest;
// plan_classic.cc: the other models of ai.onnx.ml
Plan PlanClassScores, PlanSvmScores, PlanCategoryIndex, PlanDistances;

}  // namespace reprise::cpu
