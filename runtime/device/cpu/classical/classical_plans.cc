#include "runtime/device/cpu/classical/classical_plans.h"

namespace reprise::cpu {
namespace {

// The ops that have kernels here; the rows of one op are asked in order.
// clang-format off
constexpr OpPlan kPlans[] = {
    {"reprise.TreeEnsemble", PlanForest},
    {"reprise.ClassScores", PlanClassScores},
    {"reprise.SvmScores", PlanSvmScores},
    {"reprise.CategoryIndex", PlanCategoryIndex},
    {"reprise.Distances", PlanDistances},
};
// clang-format on

}  // namespace

KernelFamily ClassicalFamily() { return {kPlans}; }

}  // namespace reprise::cpu
