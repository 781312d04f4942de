// Casts between float32 and the two halves: how a model that is stored in half takes its inputs,
// gives its outputs and widens its weights.
#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/half.h"
#include "runtime/device/cpu/plan.h"
#include "runtime/device/cpu/weight_memory.h"

namespace reprise::cpu {
namespace {

struct HalfCastParams {
  const HalfKernels* kernels = nullptr;
  bool widens = false;
  int64_t elements = 0;
  int64_t batch_rows = 0;
};

void RunHalfCast(const LaunchArgs& launch) {
  constexpr int64_t kGrain = 64;  // elements, so that parts share no line
  const auto& p = *static_cast<const HalfCastParams*>(launch.params);
  const int64_t live = LiveOf(p.elements, p.batch_rows, *launch.frame);
  const ItemRange range = RangeOfPart(live, kGrain, launch.part, launch.parts);
  const int64_t count = range.end - range.begin;
  if (p.widens) {
    p.kernels->widen(static_cast<const uint16_t*>(launch.operands[0]) + range.begin,
                     static_cast<float*>(launch.operands[1]) + range.begin, count);
  } else {
    p.kernels->narrow(static_cast<const float*>(launch.operands[0]) + range.begin,
                      static_cast<uint16_t*>(launch.operands[1]) + range.begin, count);
  }
}

}  // namespace

std::vector<Candidate> PlanHalfCast(const CpuTarget& target, const NodeView& node) {
  const bool widens = IsHalf(node.dtype(0)) && node.out_dtype() == DType::kFloat32;
  const bool narrows = node.dtype(0) == DType::kFloat32 && IsHalf(node.out_dtype());
  if (!widens && !narrows) return {};
  HalfCastParams params;
  params.kernels = &HalfKernelsFor(target.isa, widens ? node.dtype(0) : node.out_dtype());
  params.widens = widens;
  params.elements = NumElements(node.out_shape());
  params.batch_rows = node.batch_rows();
  Candidate candidate = MakeCandidate(target, node, "half", RunHalfCast, params,
                                      static_cast<double>(params.elements));
  candidate.option.takes_live_rows = params.batch_rows > 0;
  if (widens) candidate.option.unaligned_inputs = {0};
  return {std::move(candidate)};
}

ParameterExprPtr HalfOf(const ParameterExprPtr& floats) {
  if (floats == nullptr || floats->dtype() != DType::kFloat32) return nullptr;
  const std::string& op = floats->op();
  const std::vector<ParameterExprPtr>& inputs = floats->inputs();
  if (op == "Cast") return IsHalf(inputs[0]->dtype()) ? inputs[0] : nullptr;
  if (op != "Concat" && op != "Transpose" && op != "Reshape" && op != "Identity") return nullptr;
  std::vector<ParameterExprPtr> halves = inputs;
  for (size_t i = 0; i < (op == "Concat" ? inputs.size() : 1); ++i) {
    halves[i] = HalfOf(inputs[i]);
    if (halves[i] == nullptr || halves[i]->dtype() != halves[0]->dtype()) return nullptr;
  }
  const DType dtype = halves[0]->dtype();
  return ParameterExpr::Apply(op, floats->attributes(), std::move(halves), dtype, floats->shape());
}

absl::StatusOr<Tensor> RunWiden(const CpuTarget& target, const Tensor& half) {
  return Tensor::Make(DType::kFloat32, half.shape(), [&](void* floats) {
    HalfKernelsFor(target.isa, half.dtype())
        .widen(half.data(), static_cast<float*>(floats), half.num_elements());
  });
}

}  // namespace reprise::cpu
