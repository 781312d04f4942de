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
    {kPackOp, RunPack},         {kPackInt8Op, RunPackInt8},
    {kPackHalfOp, RunPackHalf}, {kPackBlocksOp, RunPackBlocks},
    {kPackBf16Op, RunPackBf16}, {kPackMapsOp, RunPackMaps},
};

}  // namespace

KernelFamily GemmFamily() { return {kPlans, kPrepares}; }

}  // namespace reprise::cpu
