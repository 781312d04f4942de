#include "runtime/device/cpu/conv/conv_plans.h"

#include "runtime/ops/windows/conv_op.h"
#include "runtime/ops/windows/pool_op.h"

namespace reprise::cpu {
namespace {

// The ops that have kernels here; the rows of one op are asked in order.
// clang-format off
constexpr OpPlan kPlans[] = {
    {ConvOp::kName, PlanConv},
    {FusedConvOp::kName, PlanConv},
    {ConvTransposeOp::kName, PlanConvTranspose},
    {FusedConvTransposeOp::kName, PlanConvTranspose},
    {MaxPoolOp::kName, PlanPool},
    {AveragePoolOp::kName, PlanPool},
};
// clang-format on

// Every op of prepare programs that is this family's own. (No constexpr: a sanitizer does not take
// the addresses of names for known.)
const OpPrepare kPrepares[] = {
    {kPackWinogradOp, RunPackWinograd},
    {kSplitPhasesOp, RunSplitPhases},
    {kPackPhasesOp, RunPackPhases},
};

}  // namespace

KernelFamily ConvFamily() { return {kPlans, kPrepares}; }

}  // namespace reprise::cpu
