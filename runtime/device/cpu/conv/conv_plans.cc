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
    {kPackWinogradOp,
     [](const PrepareCall& call) {
       return RunPackWinograd(call.target, call.attributes, call.weight(), call.memory);
     }},
    {kSplitPhasesOp,
     [](const PrepareCall& call) {
       return RunSplitPhases(call.attributes, call.weight(), call.memory);
     }},
    {kPackPhasesOp,
     [](const PrepareCall& call) {
       return RunPackPhases(call.target, call.attributes, call.weight(), call.memory);
     }},
};

}  // namespace

KernelFamily ConvFamily() { return {kPlans, kPrepares}; }

}  // namespace reprise::cpu
