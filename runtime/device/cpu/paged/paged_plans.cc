#include "runtime/device/cpu/paged/paged_plans.h"

#include "runtime/ops/attention/paged_op.h"

namespace reprise::cpu {
namespace {

// The ops that have kernels here; the rows of one op are asked in order.
// clang-format off
constexpr OpPlan kPlans[] = {
    {PagedAttentionOp::kName, PlanPagedAttention},
    {PagedCrossAttentionOp::kName, PlanPagedCrossAttention},
};
// clang-format on

}  // namespace

KernelFamily PagedFamily() { return {kPlans}; }

}  // namespace reprise::cpu
