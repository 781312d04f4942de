#include "runtime/device/cpu/gemm/gemm_plans.h"

#include "runtime/ops/products/linear_op.h"
#include "runtime/ops/products/matmul_op.h"

namespace reprise::cpu {
namespace {

// The ops that have kernels here; the rows of one op are asked in order.
// clang-format off
constexpr OpPlan kPlans[] = {
    {LinearOp::kName, PlanLinear},
    {MatMulOp::kName, PlanMatMul},
    {FusedMatMulOp::kName, PlanMatMul},
    {GemmOp::kName, PlanGemm},
    {"Det", PlanDet},
};
// clang-format on

// Every op of prepare programs that is this family's own. (No constexpr: a sanitizer does not take
// the addresses of names for known.)
const OpPrepare kPrepares[] = {
    {kPackOp,
     [](const PrepareCall& call) {
       return RunPack(call.target, call.attributes, call.weight(), call.memory);
     }},
    {kPackInt8Op,
     [](const PrepareCall& call) {
       return RunPackInt8(call.target, call.attributes, call.weight(), call.input(1), call.memory);
     }},
    {kPackHalfOp,
     [](const PrepareCall& call) {
       return RunPackHalf(call.target, call.attributes, call.weight(), call.memory);
     }},
    {kPackBlocksOp,
     [](const PrepareCall& call) {
       return RunPackBlocks(call.target, call.attributes, call.weight(), *call.inputs[1],
                            call.input(2), call.memory);
     }},
    {kPackBf16Op,
     [](const PrepareCall& call) {
       return RunPackBf16(call.target, call.attributes, call.weight(), call.input(1), call.memory);
     }},
    {kPackMapsOp,
     [](const PrepareCall& call) {
       return RunPackMaps(call.target, call.attributes, call.weight(), call.memory);
     }},
};

}  // namespace

KernelFamily GemmFamily() { return {kPlans, kPrepares}; }

}  // namespace reprise::cpu
