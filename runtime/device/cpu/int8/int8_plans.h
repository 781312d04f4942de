// Plans of quantised products, convolutions and planes, and the prepare steps of their weights.
#pragma once

#include <vector>

#include "runtime/device/cpu/plan/kernel_family.h"
#include "runtime/device/cpu/plan/plan.h"

namespace reprise::cpu {

// Returns the kernel family that this folder offers a device.
KernelFamily Int8Family();

// plan_integer.cc
std::vector<Candidate> PlanIntegerLinear(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanMatMulInteger(const CpuTarget& target, const NodeView& node);
// The prepare op of its packed weights.
inline constexpr char kPackU8S8Op[] = "cpu.PackU8S8Panels";
absl::StatusOr<Tensor> RunPackU8S8(const CpuTarget& target, const Attributes& attributes,
                                   const Tensor& weights, WeightMemory& memory);

// plan_rounded.cc: products of floats whose rows are rounded to bytes.
std::vector<Candidate> PlanRoundedLinear(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanRoundedMatMul(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanRoundedGemm(const CpuTarget& target, const NodeView& node);
// The prepare op of their packed weights: it takes the values, their scales, and their zero points
// where there are any.
inline constexpr char kPackByteColumnsOp[] = "cpu.PackByteColumns";
absl::StatusOr<Tensor> RunPackByteColumns(const CpuTarget& target, const Attributes& attributes,
                                          const Tensor& values, const Tensor* scales,
                                          const Tensor* points, WeightMemory& memory);

// plan_integer_conv.cc
std::vector<Candidate> PlanIntegerConv(const CpuTarget& target, const NodeView& node);

// plan_integer_conv_rows.cc: convolutions whose result has its maps last.
std::vector<Candidate> PlanIntegerConvRows(const CpuTarget& target, const NodeView& node);
// The prepare op of its packed weights.
inline constexpr char kPackConvU8S8Op[] = "cpu.PackConvU8S8";
absl::StatusOr<Tensor> RunPackConvU8S8(const CpuTarget& target, const Attributes& attributes,
                                       const Tensor& weights, WeightMemory& memory);

// plan_byte_depthwise.cc: depthwise convolutions.
std::vector<Candidate> PlanByteDepthwise(const CpuTarget& target, const NodeView& node);
// packed_taps.cc: the prepare op of its weights.
inline constexpr char kPackTapsOp[] = "cpu.PackTaps";
absl::StatusOr<Tensor> RunPackTaps(const Attributes& attributes, const Tensor& weights,
                                   WeightMemory& memory);

// plan_byte_planes.cc: sums and functions of quantised values, the largest bytes of windows.
std::vector<Candidate> PlanIntegerAdd(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanByteTable(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanBytePool(const CpuTarget& target, const NodeView& node);

// plan_quantize.cc
std::vector<Candidate> PlanQuantize(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanDequantize(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanFakeQuantize(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanDynamicQuantize(const CpuTarget& target, const NodeView& node);

// plan_segment_quantize.cc
std::vector<Candidate> PlanSegmentQuantize(const CpuTarget& target, const NodeView& node);

}  // namespace reprise::cpu
