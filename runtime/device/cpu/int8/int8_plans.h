// Plans of quantised products, convolutions and planes, and the prepare steps of their weights.
#pragma once

#include "runtime/device/cpu/plan/kernel_family.h"
#include "runtime/device/cpu/plan/plan.h"

namespace reprise::cpu {

// Returns the kernel family that this folder offers a device.
KernelFamily Int8Family();

// plan_integer.cc
Plan PlanIntegerLinear, PlanMatMulInteger;
// The prepare op of its packed weights.
inline constexpr char kPackU8S8Op[] = "cpu.PackU8S8Panels";
Prepare RunPackU8S8;

// plan_rounded.cc: products of floats whose rows are rounded to bytes.
Plan PlanRoundedLinear, PlanRoundedMatMul, PlanRoundedGemm;
// The prepare op of their packed weights: it takes the values, their scales, and their zero points
// where there are any.
inline constexpr char kPackByteColumnsOp[] = "cpu.PackByteColumns";
Prepare RunPackByteColumns;

// plan_integer_conv.cc
Plan PlanIntegerConv;

// plan_integer_conv_rows.cc: convolutions whose result has its maps last.
Plan PlanIntegerConvRows;
// The prepare op of its packed weights.
inline constexpr char kPackConvU8S8Op[] = "cpu.PackConvU8S8";
Prepare RunPackConvU8S8;

// plan_byte_depthwise.cc: depthwise convolutions.
Plan PlanByteDepthwise;
// packed_taps.cc: the prepare op of its weights.
inline constexpr char kPackTapsOp[] = "cpu.PackTaps";
Prepare RunPackTaps;

// plan_byte_planes.cc: sums and functions of quantised values, the largest bytes of windows.
Plan PlanIntegerAdd, PlanByteTable, PlanBytePool;

// plan_quantize.cc
Plan PlanQuantize, PlanDequantize, PlanFakeQuantize, PlanDynamicQuantize;

// plan_segment_quantize.cc
Plan PlanSegmentQuantize;

}  // namespace reprise::cpu
