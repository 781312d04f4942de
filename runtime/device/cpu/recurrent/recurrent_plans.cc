#include "runtime/device/cpu/recurrent/recurrent_plans.h"

#include "runtime/ops/recurrent/recurrent_op.h"

namespace reprise::cpu {
namespace {

// The ops that have kernels here; the rows of one op are asked in order.
// clang-format off
constexpr OpPlan kPlans[] = {
    {LstmOp::kName, PlanLstm},
    {GruOp::kName, PlanGru},
    {RnnOp::kName, PlanRnn},
};
// clang-format on

}  // namespace

KernelFamily RecurrentFamily() { return {kPlans}; }

}  // namespace reprise::cpu
