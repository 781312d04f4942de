#include "runtime/device/cpu/recurrent/recurrent_plans.h"

namespace reprise::cpu {
namespace {

// The ops that have kernels here; the rows of one op are asked in order.
// clang-format off
constexpr OpPlan kPlans[] = {
    {"LSTM", PlanLstm},
    {"GRU", PlanGru},
    {"RNN", PlanRnn},
};
// clang-format on

}  // namespace

KernelFamily RecurrentFamily() { return {kPlans}; }

}  // namespace reprise::cpu
