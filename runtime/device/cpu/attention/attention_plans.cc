#include "runtime/device/cpu/attention/attention_plans.h"

#include "runtime/ops/attention/attention_op.h"
#include "runtime/ops/attention/relative_attention_op.h"

namespace reprise::cpu {
namespace {

// The ops that have kernels here; the rows of one op are asked in order.
// clang-format off
constexpr OpPlan kPlans[] = {
    {AttentionOp::kName, PlanAttention},
    {RelativeAttentionOp::kName, PlanRelativeAttention},
};
// clang-format on

}  // namespace

KernelFamily AttentionFamily() { return {kPlans}; }

}  // namespace reprise::cpu
