#include "runtime/device/cpu/elementwise/elementwise_plans.h"

#include "runtime/ops/elementwise/activation_op.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/comparison_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/reduce/arg_op.h"
#include "runtime/ops/reduce/channel_norm_op.h"
#include "runtime/ops/reduce/layer_norm_op.h"
#include "runtime/ops/reduce/reduce_op.h"
#include "runtime/ops/reduce/rotary_op.h"
#include "runtime/ops/reduce/softmax_op.h"
#include "runtime/ops/windows/pool_op.h"

namespace reprise::cpu {
namespace {

// The ops that have kernels here; the rows of one op are asked in order.
// clang-format off
constexpr OpPlan kPlans[] = {
    {GlobalAveragePoolOp::kName, PlanGlobalAverage},
    {InstanceNormalizationOp::kName, PlanChannelNorm},
    {GroupNormalizationOp::kName, PlanChannelNorm},
    {LayerNormalizationOp::kName, PlanLayerNorm},
    {RmsNormalizationOp::kName, PlanRmsNorm},
    {AddLayerNormOp::kName, PlanAddLayerNorm},
    {RotaryOp::kName, PlanRotary},
    {SoftmaxOp::kName, PlanSoftmax},
    {LogSoftmaxOp::kName, PlanSoftmax},
    {ArgMaxOp::kName, PlanPlaces},
    {ArgMinOp::kName, PlanPlaces},
    {TopKOp::kName, PlanTopK},
    {ReduceMeanOp::kName, PlanReduce},
    {ReduceSumOp::kName, PlanReduce},
    {ReduceMaxOp::kName, PlanReduce},
    {ReduceMinOp::kName, PlanReduce},
    {ReduceProdOp::kName, PlanReduce},
    {"ReduceSumSquare", PlanReduce},
    {ReduceL1Op::kName, PlanReduce},
    {ReduceL2Op::kName, PlanReduce},
    {"ReduceLogSum", PlanReduce},
    {GlobalMaxPoolOp::kName, PlanReduce},
    {NegOp::kName, PlanUnary},
    {AbsOp::kName, PlanUnary},
    {SqrtOp::kName, PlanUnary},
    {ReciprocalOp::kName, PlanUnary},
    {FloorOp::kName, PlanUnary},
    {CeilOp::kName, PlanUnary},
    {RoundOp::kName, PlanUnary},
    {ExpOp::kName, PlanUnary},
    {TanhOp::kName, PlanUnary},
    {SigmoidOp::kName, PlanUnary},
    {ErfOp::kName, PlanUnary},
    {ReluOp::kName, PlanUnary},
    {SignOp::kName, PlanUnary},
    {LogOp::kName, PlanUnary},
    {"Sin", PlanUnary},
    {"Cos", PlanUnary},
    {"Tan", PlanUnary},
    {"Asin", PlanUnary},
    {"Acos", PlanUnary},
    {"Atan", PlanUnary},
    {SoftplusOp::kName, PlanUnary},
    {"Softsign", PlanUnary},
    {MishOp::kName, PlanUnary},
    {HardSwishOp::kName, PlanUnary},
    {LeakyReluOp::kName, PlanShaped},
    {EluOp::kName, PlanShaped},
    {"Selu", PlanShaped},
    {"Celu", PlanShaped},
    {HardSigmoidOp::kName, PlanShaped},
    {"ThresholdedRelu", PlanShaped},
    {"Shrink", PlanShaped},
    {QuickGeluOp::kName, PlanShaped},
    {GeluOp::kName, PlanGelu},
    {AddOp::kName, PlanBinary},
    {SubOp::kName, PlanBinary},
    {MulOp::kName, PlanBinary},
    {DivOp::kName, PlanBinary},
    {MaxOp::kName, PlanBinary},
    {MinOp::kName, PlanBinary},
    {"PRelu", PlanBinary},
    {"com.microsoft.BiasGelu", PlanBinary},
    {"com.microsoft.FastGelu", PlanBinary},
    {PowOp::kName, PlanPow},
    {ClipOp::kName, PlanShaped},
    {AddOp::kName, PlanTypedMath},
    {SubOp::kName, PlanTypedMath},
    {MulOp::kName, PlanTypedMath},
    {DivOp::kName, PlanTypedMath},
    {ModOp::kName, PlanTypedMath},
    {MaxOp::kName, PlanTypedMath},
    {MinOp::kName, PlanTypedMath},
    {"BitwiseAnd", PlanTypedMath},
    {"BitwiseOr", PlanTypedMath},
    {"BitwiseXor", PlanTypedMath},
    {EqualOp::kName, PlanCompare},
    {LessOp::kName, PlanCompare},
    {LessOrEqualOp::kName, PlanCompare},
    {GreaterOp::kName, PlanCompare},
    {GreaterOrEqualOp::kName, PlanCompare},
    {AndOp::kName, PlanLogic},
    {OrOp::kName, PlanLogic},
    {XorOp::kName, PlanLogic},
    {NotOp::kName, PlanLogic},
    {"IsNaN", PlanSpecial},
    {"IsInf", PlanSpecial},
    {CastOp::kName, PlanCast},
    {IdentityOp::kName, PlanCast},
    {WhereOp::kName, PlanWhere},
};
// clang-format on

}  // namespace

KernelFamily ElementwiseFamily() { return {kPlans}; }

}  // namespace reprise::cpu
