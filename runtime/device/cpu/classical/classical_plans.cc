#include "runtime/device/cpu/classical/classical_plans.h"

#include "runtime/ops/classical/classical_op.h"

namespace reprise::cpu {
namespace {

// The ops that have kernels here; the rows of one op are asked in order.
// clang-format off
constexpr OpPlan kPlans[] = {
    {TreeEnsembleOp::kName, PlanForest},
    {ClassScoresOp::kName, PlanClassScores},
    {SvmScoresOp::kName, PlanSvmScores},
    {CategoryIndexOp::kName, PlanCategoryIndex},
    {DistancesOp::kName, PlanDistances},
};
// clang-format on

}  // namespace

KernelFamily ClassicalFamily() { return {kPlans}; }

}  // namespace reprise::cpu
