#include "runtime/device/cpu/resize/resize_plans.h"

namespace reprise::cpu {
namespace {

// The ops that have kernels here; the rows of one op are asked in order.
// clang-format off
constexpr OpPlan kPlans[] = {
    {"Resize", PlanResize},
    {"GridSample", PlanGridSample},
    {"reprise.DeformColumns", PlanDeformColumns},
};
// clang-format on

}  // namespace

KernelFamily ResizeFamily() { return {kPlans}; }

}  // namespace reprise::cpu
