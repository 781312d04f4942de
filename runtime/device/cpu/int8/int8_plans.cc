#include "runtime/device/cpu/int8/int8_plans.h"

#include "runtime/ops/products/linear_op.h"
#include "runtime/ops/products/matmul_op.h"
#include "runtime/ops/quantized/byte_op.h"
#include "runtime/ops/quantized/integer_conv_op.h"
#include "runtime/ops/quantized/integer_linear_op.h"
#include "runtime/ops/quantized/quantize_op.h"
#include "runtime/ops/windows/pool_op.h"

namespace reprise::cpu {
namespace {

// The ops that have kernels here; the rows of one op are asked in order.
// clang-format off
constexpr OpPlan kPlans[] = {
    {IntegerLinearOp::kName, PlanIntegerLinear},
    {MatMulIntegerOp::kName, PlanMatMulInteger},
    {LinearOp::kName, PlanRoundedLinear},
    {MatMulOp::kName, PlanRoundedMatMul},
    {GemmOp::kName, PlanRoundedGemm},
    {SegmentDynamicQuantizeOp::kName, PlanSegmentQuantize},
    {IntegerConvOp::kName, PlanIntegerConv},
    {IntegerConvOp::kName, PlanByteDepthwise},
    {IntegerConvOp::kName, PlanIntegerConvRows},
    {IntegerAddOp::kName, PlanIntegerAdd},
    {ByteTableOp::kName, PlanByteTable},
    {MaxPoolOp::kName, PlanBytePool},
    {QuantizeLinearOp::kName, PlanQuantize},
    {DequantizeLinearOp::kName, PlanDequantize},
    {FakeQuantizeOp::kName, PlanFakeQuantize},
    {DynamicQuantizeLinearOp::kName, PlanDynamicQuantize},
};
// clang-format on

// Every op of prepare programs that is this family's own. (No constexpr: a sanitizer does not take
// the addresses of names for known.)
const OpPrepare kPrepares[] = {
    {kPackU8S8Op, RunPackU8S8},
    {kPackByteColumnsOp, RunPackByteColumns},
    {kPackConvU8S8Op, RunPackConvU8S8},
    {kPackTapsOp, RunPackTaps},
};

}  // namespace

KernelFamily Int8Family() { return {kPlans, kPrepares}; }

}  // namespace reprise::cpu
