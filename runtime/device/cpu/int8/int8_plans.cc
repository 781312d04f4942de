#include "runtime/device/cpu/int8/int8_plans.h"

namespace reprise::cpu {
namespace {

// The ops that have kernels here; the rows of one op are asked in order.
// clang-format off
constexpr OpPlan kPlans[] = {
    {"reprise.IntegerLinear", PlanIntegerLinear},
    {"MatMulInteger", PlanMatMulInteger},
    {"reprise.SegmentDynamicQuantizeLinear", PlanSegmentQuantize},
    {"reprise.IntegerConv", PlanIntegerConv},
    {"reprise.IntegerConv", PlanByteDepthwise},
    {"reprise.IntegerConv", PlanIntegerConvRows},
    {"reprise.IntegerAdd", PlanIntegerAdd},
    {"reprise.ByteTable", PlanByteTable},
    {"MaxPool", PlanBytePool},
    {"QuantizeLinear", PlanQuantize},
    {"DequantizeLinear", PlanDequantize},
    {"reprise.FakeQuantize", PlanFakeQuantize},
    {"DynamicQuantizeLinear", PlanDynamicQuantize},
};
// clang-format on

// Every op of prepare programs that is this family's own. (No constexpr: a sanitizer does not take
// the addresses of names for known.)
const OpPrepare kPrepares[] = {
    {kPackU8S8Op,
     [](const PrepareCall& call) {
       return RunPackU8S8(call.target, call.attributes, call.weight(), call.memory);
     }},
    {kPackConvU8S8Op,
     [](const PrepareCall& call) {
       return RunPackConvU8S8(call.target, call.attributes, call.weight(), call.memory);
     }},
    {kPackTapsOp,
     [](const PrepareCall& call) {
       return RunPackTaps(call.attributes, call.weight(), call.memory);
     }},
};

}  // namespace

KernelFamily Int8Family() { return {kPlans, kPrepares}; }

}  // namespace reprise::cpu
