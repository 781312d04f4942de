#include "runtime/device/cpu/resize/resize_plans.h"

#include "runtime/ops/windows/conv_op.h"
#include "runtime/ops/windows/resize_op.h"

namespace reprise::cpu {
namespace {

// The ops that have kernels here; the rows of one op are asked in order.
// clang-format off
constexpr OpPlan kPlans[] = {
    {ResizeOp::kName, PlanResize},
    {"GridSample", PlanGridSample},
    {DeformColumnsOp::kName, PlanDeformColumns},
};
// clang-format on

}  // namespace

KernelFamily ResizeFamily() { return {kPlans}; }

}  // namespace reprise::cpu
