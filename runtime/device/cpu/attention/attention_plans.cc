#include "runtime/device/cpu/attention/attention_plans.h"

namespace reprise::cpu {
namespace {

// The ops that have kernels here; the rows of one op are asked in order.
// clang-format off
constexpr OpPlan kPlans[] = {
    {"reprise.Attention", PlanAttention},
    {"reprise.RelativeAttention", PlanRelativeAttention},
};
// clang-format on

}  // namespace

KernelFamily AttentionFamily() { return {kPlans}; }

}  // namespace reprise::cpu
