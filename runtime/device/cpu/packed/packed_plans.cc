#include "runtime/device/cpu/packed/packed_plans.h"

namespace reprise::cpu {
namespace {

// The ops that have kernels here; the rows of one op are asked in order.
// clang-format off
constexpr OpPlan kPlans[] = {
    {"reprise.SegmentAttention", PlanSegmentAttention},
    {"reprise.SegmentReduce", PlanSegmentReduce},
    {"reprise.SegmentSpread", PlanSegmentSpread},
    {"reprise.SegmentPlace", PlanSegmentPlace},
    {"reprise.SegmentPick", PlanSegmentPick},
    {"reprise.SegmentCumSum", PlanSegmentCumSum},
};
// clang-format on

}  // namespace

KernelFamily PackedFamily() { return {kPlans}; }

}  // namespace reprise::cpu
