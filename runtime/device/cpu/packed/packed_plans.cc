#include "runtime/device/cpu/packed/packed_plans.h"

#include "runtime/ops/attention/segment_op.h"

namespace reprise::cpu {
namespace {

// The ops that have kernels here; the rows of one op are asked in order.
// clang-format off
constexpr OpPlan kPlans[] = {
    {SegmentAttentionOp::kName, PlanSegmentAttention},
    {SegmentReduceOp::kName, PlanSegmentReduce},
    {SegmentSpreadOp::kName, PlanSegmentSpread},
    {SegmentPlaceOp::kName, PlanSegmentPlace},
    {SegmentPickOp::kName, PlanSegmentPick},
    {SegmentCumSumOp::kName, PlanSegmentCumSum},
};
// clang-format on

}  // namespace

KernelFamily PackedFamily() { return {kPlans}; }

}  // namespace reprise::cpu
