// QuantizeLinear, DequantizeLinear, both in a row and DynamicQuantizeLinear by the vector kernels.
// Blocks of scales, and dtypes other than float32, integers of 8 and 16 bits and int32 without a
// zero point, are left to the reference kernels.
#include "runtime/device/cpu/int8/int8_plans.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/device/cpu/simd/quantize.h"
#include "runtime/ops/quantized/quantize.h"
#include "runtime/ops/quantized/quantize_op.h"

namespace reprise::cpu {
namespace {

struct QuantizeParams {
  QuantizeFunction function = nullptr;
  bool many = false;                                 // neighbours have scales of their own
  int64_t elements = 0;                              // elements of the whole tensor
  int64_t size = 1;                                  // scales
  int64_t inner = 0;                                 // neighbours with one scale
  int64_t x_bytes = 0, y_bytes = 0, zero_bytes = 0;  // bytes of one element
  bool has_zero = false;
  int out = 0;
  int64_t batch_rows = 0;
};

void RunQuantize(const LaunchArgs& launch) {
  const auto& p = *static_cast<const QuantizeParams*>(launch.params);
  constexpr int64_t kGrain = 64;
  const int64_t live = LiveOf(p.elements, p.batch_rows, *launch.frame);
  const ItemRange range = RangeOfPart(live, kGrain, launch.part, launch.parts);
  const auto* x = static_cast<const std::byte*>(launch.operands[0]);
  const auto* scale = static_cast<const float*>(launch.operands[1]);
  const auto* zero = p.has_zero ? static_cast<const std::byte*>(launch.operands[2]) : nullptr;
  auto* y = static_cast<std::byte*>(launch.operands[p.out]);
  for (int64_t i = range.begin; i < range.end;) {
    const int64_t period = p.many ? p.size : p.inner;
    const int64_t first = p.many ? i % p.size : i / p.inner % p.size;
    const int64_t count = std::min(range.end - i, period - i % period);
    p.function(x + i * p.x_bytes, scale + first,
               zero == nullptr ? nullptr : zero + first * p.zero_bytes, y + i * p.y_bytes, count);
    i += count;
  }
}

// Notes how scales, operand 1, lie along operand 0; returns false for a form without kernel.
bool SetGranularity(const NodeView& node, QuantizeParams& params) {
  const absl::Span<const int64_t> shape = node.shape(0);
  params.elements = NumElements(shape);
  if (QuantizeLinearOp::From(node.attributes()).block_size != 0 || params.elements == 0)
    return false;
  params.inner = params.elements;
  if (NumElements(node.shape(1)) == 1) return true;
  const auto axis = NormalizeAxis(QuantizeLinearOp::From(node.attributes()).axis, node.rank(0));
  if (!axis.ok()) return false;
  params.size = shape[*axis];
  params.inner = NumElements(shape.subspan(*axis + 1));
  params.many = params.inner == 1;
  return true;
}

// `quantized`: the dtype of the integers; `function_of`: of the kernels, chooses by it.
std::vector<Candidate> PlanSteps(const CpuTarget& target, const NodeView& node,
                                 absl::string_view name, DType quantized,
                                 QuantizeFunction (*function_of)(DType, bool)) {
  QuantizeParams params;
  if (node.dtype(1) != DType::kFloat32 || !SetGranularity(node, params)) return {};
  params.function = function_of(quantized, params.many);
  if (params.function == nullptr) return {};
  params.x_bytes = static_cast<int64_t>(DTypeSize(node.dtype(0)));
  params.y_bytes = static_cast<int64_t>(DTypeSize(node.out_dtype()));
  params.zero_bytes = static_cast<int64_t>(DTypeSize(quantized));
  params.has_zero = node.has_input(2);
  params.out = static_cast<int>(node.num_inputs());
  params.batch_rows = node.batch_rows();
  Candidate candidate = MakeCandidate(target, node, name, RunQuantize, params,
                                      3.0 * static_cast<double>(params.elements));
  candidate.option.takes_live_rows = params.batch_rows > 0;
  if (params.x_bytes == params.y_bytes) candidate.option.in_place = 0;
  return {std::move(candidate)};
}

struct DynamicParams {
  const QuantizeKernels* kernels = nullptr;
  int64_t elements = 0;
};

// Quantises. Each part looks at all elements: no part can know the range before others are done.
void RunDynamic(const LaunchArgs& launch) {
  const auto& p = *static_cast<const DynamicParams*>(launch.params);
  constexpr int64_t kGrain = 64;
  const auto* x = static_cast<const float*>(launch.operands[0]);
  float low = 0, high = 0;
  p.kernels->range(x, p.elements, low, high);
  const ops::DynamicScale scale = ops::DynamicScaleOfRange(low, high);
  const ItemRange range = RangeOfPart(p.elements, kGrain, launch.part, launch.parts);
  p.kernels->quantize(DType::kUInt8, /*many=*/false)(
      x + range.begin, &scale.scale, &scale.zero_point,
      static_cast<uint8_t*>(launch.operands[1]) + range.begin, range.end - range.begin);
  if (launch.part != 0) return;
  *static_cast<float*>(launch.operands[2]) = scale.scale;
  *static_cast<uint8_t*>(launch.operands[3]) = scale.zero_point;
}

}  // namespace

std::vector<Candidate> PlanQuantize(const CpuTarget& target, const NodeView& node) {
  if (node.dtype(0) != DType::kFloat32) return {};
  return PlanSteps(target, node, "quantize", node.out_dtype(),
                   QuantizeKernelsFor(target.isa).quantize);
}

std::vector<Candidate> PlanDequantize(const CpuTarget& target, const NodeView& node) {
  if (node.out_dtype() != DType::kFloat32) return {};
  if (node.dtype(0) == DType::kInt32 && node.has_input(2)) return {};
  return PlanSteps(target, node, "dequantize", node.dtype(0),
                   QuantizeKernelsFor(target.isa).dequantize);
}

std::vector<Candidate> PlanFakeQuantize(const CpuTarget& target, const NodeView& node) {
  const absl::StatusOr<DType> quantized = ops::QuantizedTypeOf(node.node(), node.dtype(2));
  if (!quantized.ok()) return {};
  return PlanSteps(target, node, "fake_quantize", *quantized, QuantizeKernelsFor(target.isa).fake);
}

std::vector<Candidate> PlanDynamicQuantize(const CpuTarget& target, const NodeView& node) {
  for (size_t i : {0, 1, 2}) {
    if (!node.has_output(i)) return {};
  }
  const DynamicParams params = {&QuantizeKernelsFor(target.isa), NumElements(node.shape(0))};
  return {MakeCandidate(target, node, "dynamic_quantize", RunDynamic, params,
                        5.0 * static_cast<double>(params.elements))};
}

}  // namespace reprise::cpu
