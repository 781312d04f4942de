#include "runtime/device/cpu/cpu_device.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/cpu/attention/attention_plans.h"
#include "runtime/device/cpu/classical/classical_plans.h"
#include "runtime/device/cpu/conv/conv_plans.h"
#include "runtime/device/cpu/elementwise/elementwise_plans.h"
#include "runtime/device/cpu/gemm/foreign_blas.h"
#include "runtime/device/cpu/gemm/gemm_plans.h"
#include "runtime/device/cpu/int8/int8_plans.h"
#include "runtime/device/cpu/kernel_list.h"
#include "runtime/device/cpu/movement/movement_plans.h"
#include "runtime/device/cpu/packed/packed_plans.h"
#include "runtime/device/cpu/paged/paged_plans.h"
#include "runtime/device/cpu/plan/kernel_family.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/device/cpu/recurrent/recurrent_plans.h"
#include "runtime/device/cpu/resize/resize_plans.h"
#include "runtime/device/cpu/simd/half.h"
#include "runtime/device/cpu/simd/weight_memory.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/onnx_types.h"
#include "runtime/ops/weights/narrowed_weights.h"

namespace reprise {
namespace {

// Raised when a kernel, a packed layout or a rule of choice changes: old recipes are then not taken
// for new ones.
constexpr int kKernelVersion = 26;

// The families of kernels. Where two have rows for one op the first family is asked first: floats
// before bytes.
// clang-format off
constexpr cpu::KernelFamily (*kFamilies[])() = {
    cpu::GemmFamily,
    cpu::AttentionFamily,
    cpu::ConvFamily,
    cpu::Int8Family,
    cpu::ElementwiseFamily,
    cpu::MovementFamily,
    cpu::PackedFamily,
    cpu::PagedFamily,
    cpu::RecurrentFamily,
    cpu::ResizeFamily,
    cpu::ClassicalFamily,
};
// clang-format on

// Returns whether the op is a Cast to float32 of a weight that is stored in half.
bool Widens(absl::string_view op, const Attributes& attributes, const Tensor& weight) {
  return op == CastOp::kName && attributes.Int("to", 0) == ops::OnnxNumber(DType::kFloat32) &&
         cpu::IsHalf(weight.dtype());
}

std::vector<cpu::Candidate> FamilyCandidates(const cpu::CpuTarget& target, const Graph& graph,
                                             NodeId id) {
  const cpu::NodeView node(graph, id);
  for (const auto family : kFamilies) {
    for (const cpu::OpPlan& row : family().plans) {
      if (row.op != node.op()) continue;
      std::vector<cpu::Candidate> candidates = row.plan(target, node);
      if (!candidates.empty()) return candidates;
    }
  }
  return {};
}

std::vector<cpu::Candidate> CandidatesOf(const cpu::CpuTarget& target, const Graph& graph,
                                         NodeId id) {
  std::vector<cpu::Candidate> candidates = FamilyCandidates(target, graph, id);
  if (!target.one_order || candidates.size() < 2) return candidates;
  const std::string order = candidates.front().option.Order();
  std::erase_if(candidates, [&](const cpu::Candidate& one) { return one.option.Order() != order; });
  return candidates;
}

std::shared_ptr<const cpu::ForeignBlas> LoadBlas(const CpuDeviceOptions& options,
                                                 absl::Status& status) {
  if (options.gemm_provider == GemmProvider::kOwn) return nullptr;
  absl::StatusOr<std::shared_ptr<const cpu::ForeignBlas>> blas =
      cpu::ForeignBlas::Load(options.max_isa);
  status = blas.status();
  return blas.ok() ? *std::move(blas) : nullptr;
}

std::string Fingerprint(const cpu::CpuTarget& target) {
  return absl::StrCat(
      "cpu ", CpuModelName(), ", ", IsaName(target.isa), ", kernels ", kKernelVersion,
      ", products ", kGemmProviderNames[static_cast<size_t>(target.gemm_provider)],
      target.blas == nullptr
          ? ""
          : absl::StrCat(", openblas ", target.blas->version(), " ", target.blas->core()),
      target.one_order ? ", one order of sums" : "");
}

}  // namespace

CpuDevice::CpuDevice(const CpuDeviceOptions& options)
    : target_(std::make_unique<cpu::CpuTarget>(UsableIsa(options.max_isa), options.gemm_provider,
                                               LoadBlas(options, openblas_status_),
                                               options.max_threads)),
      fingerprint_(Fingerprint(*target_)),
      weights_(std::make_unique<cpu::WeightMemory>()),
      one_order_(new CpuDevice(*target_)) {}

CpuDevice::CpuDevice(const cpu::CpuTarget& other)
    : target_([&] {
        auto target = std::make_unique<cpu::CpuTarget>(other);
        target->one_order = true;
        return target;
      }()),
      fingerprint_(Fingerprint(*target_)),
      weights_(std::make_unique<cpu::WeightMemory>()) {}

CpuDevice::~CpuDevice() = default;

bool HasCpuKernels(absl::string_view op) {
  for (const auto family : kFamilies) {
    for (const cpu::OpPlan& row : family().plans) {
      if (row.op == op) return true;
    }
  }
  return false;
}

std::vector<KernelOption> CpuDevice::Options(const Graph& graph, NodeId node) const {
  std::vector<KernelOption> options;
  for (cpu::Candidate& candidate : CandidatesOf(*target_, graph, node)) {
    options.push_back(std::move(candidate.option));
  }
  return options;
}

absl::StatusOr<BoundKernel> CpuDevice::Bind(const Graph& graph, NodeId node,
                                            const KernelOption& option) const {
  for (cpu::Candidate& candidate : CandidatesOf(*target_, graph, node)) {
    if (candidate.option.kernel == option.kernel) return std::move(candidate.bound);
  }
  return absl::InternalError(
      absl::StrCat(NodeLabel(graph.node(node)), ": kernel '", option.kernel, "' is not an option"));
}

absl::StatusOr<Tensor> CpuDevice::Prepare(const std::string& op, const Attributes& attributes,
                                          absl::Span<const std::optional<Tensor>> inputs) const {
  const bool has_weight = !inputs.empty() && inputs[0].has_value();
  for (const auto family : kFamilies) {
    for (const cpu::OpPrepare& row : family().prepares) {
      if (row.op != op) continue;
      if (!has_weight) return absl::InternalError(absl::StrCat(op, " takes a weight"));
      return row.run({*target_, attributes, inputs, *weights_});
    }
  }
  if (has_weight && inputs.size() == 1 && Widens(op, attributes, *inputs[0])) {
    return cpu::RunWiden(*target_, *inputs[0]);
  }
  if (has_weight && ops::IsNarrowing(op, attributes)) {
    ASSIGN_OR_RETURN(const DType half, ops::DTypeFromOnnx(attributes.Int("to", 0)));
    return cpu::RunNarrow(*target_, *inputs[0], half);
  }
  return PrepareWithReference(op, attributes, inputs);
}

}  // namespace reprise
