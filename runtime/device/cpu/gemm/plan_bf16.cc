// Products of weights that round their operands to bfloat16 (Precision::kBf16). The weights are
// packed so once a model version, by the prepare op cpu.PackBf16Panels.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/gemm/block_weights.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/gemm/gemm_bf16.h"
#include "runtime/device/cpu/gemm/gemm_plans.h"
#include "runtime/device/cpu/gemm/matmul_desc.h"
#include "runtime/device/cpu/simd/weight_memory.h"
#include "runtime/ops/kit/precision.h"

namespace reprise::cpu {
namespace {

struct Bf16Params {
  const Bf16Kernels* kernels = nullptr;
  Product product;
  Addends addends;
  bool scaled = false;  // the factors of columns lie in front of the packed weights
  // The operand that is the workspace, and its bytes for each of `scratch_parts` parts.
  int workspace = kNoOperand;
  int64_t scratch_bytes = 0;
  int scratch_parts = 0;
};

int64_t ScaleFloats(const Bf16Kernels& kernels, int64_t n) {
  return kernels.Panels(n) * kernels.panel_columns;
}

int64_t PackedBytes(const Bf16Kernels& kernels, int64_t k, int64_t n, bool scaled) {
  const int64_t scales = ScaleFloats(kernels, n) * static_cast<int64_t>(sizeof(float));
  return kernels.PackedBytes(k, n) + (scaled ? scales : 0);
}

void RunBf16(const LaunchArgs& args) {
  const auto& params = *static_cast<const Bf16Params*>(args.params);
  const Bf16Kernels& kernels = *params.kernels;
  const Product& p = params.product;
  const int parts = PartsWithScratch(args, params.scratch_parts);
  if (args.part >= parts) return;
  const auto floats = [&](int operand) {
    return operand == kNoOperand ? nullptr : static_cast<const float*>(args.operands[operand]);
  };
  const auto* const packed = static_cast<const float*>(args.operands[1]);
  const float* const scales = params.scaled ? packed : nullptr;
  const GemmArgs gemm = {.a = floats(0),
                         .lda = p.k,
                         .packed_b = params.scaled ? packed + ScaleFloats(kernels, p.n) : packed,
                         .c = static_cast<float*>(args.operands[p.out]),
                         .ldc = p.n,
                         .n = p.n,
                         .k = p.k,
                         .bias = floats(params.addends.bias),
                         .residual = floats(params.addends.residual),
                         .ld_residual = p.n,
                         .activation = p.activation,
                         .scratch = static_cast<std::byte*>(args.operands[params.workspace]) +
                                    args.part * params.scratch_bytes};
  const int64_t m = p.LiveExtent(*args.frame).rows;
  kernels.part(gemm, scales, kernels.Partition(m, p.n, parts, args.part));
}

}  // namespace

std::vector<Candidate> Bf16Candidates(const CpuTarget& target, const NodeView& node,
                                      const Product& product) {
  const std::optional<Addends> addends = AddendsOf(product);
  if (!node.AllOf(DType::kFloat32) || product.transposed_a || !product.weights ||
      !addends.has_value()) {
    return {};
  }
  const std::optional<Int8Weights> int8 =
      SplitInt8(node.parameter(1), product.transposed_b ? 0 : 1);
  Bf16Params params = {.product = product, .addends = *addends};
  params.scaled = product.alpha != 1 || (int8.has_value() && int8->scales != nullptr);
  params.workspace = static_cast<int>(node.num_inputs() + node.num_outputs());
  std::vector<Candidate> candidates;
  const auto add = [&](const Bf16Kernels& kernels, absl::string_view tier) {
    params.kernels = &kernels;
    params.scratch_bytes = (kernels.part_scratch_bytes(product.m, product.k) + 63) / 64 * 64;
    const int64_t most_parts =
        (product.m + kernels.tile_rows - 1) / kernels.tile_rows * kernels.Panels(product.n);
    params.scratch_parts = static_cast<int>(
        std::clamp<int64_t>(target.scratch_parts, 1, std::max<int64_t>(most_parts, 1)));
    Candidate& candidate = candidates.emplace_back(
        MakeCandidate(target, node, "gemm_bf16", RunBf16, params, product.flops()));
    KernelOption& option = candidate.option;
    option.kernel = absl::StrCat("gemm_bf16_", tier);
    option.workspace_bytes = static_cast<size_t>(params.scratch_parts * params.scratch_bytes);
    option.in_place = params.addends.residual;
    option.takes_live_rows = product.takes_live_rows();
    PrepareStep step = {.input = 1,
                        .op = kPackBf16Op,
                        .attributes = {{"panel", kernels.panel_columns},
                                       {"scale", product.alpha},
                                       {"scaled", int64_t{params.scaled}},
                                       {"transposed", int64_t{product.transposed_b}}},
                        .dtype = DType::kUInt8,
                        .shape = {PackedBytes(kernels, product.k, product.n, params.scaled)}};
    if (int8.has_value()) {
      step.parts.push_back(int8->values);
      if (int8->scales != nullptr) step.parts.push_back(int8->scales);
    }
    option.prepare.push_back(std::move(step));
    // The floats of the node are not read.
    LaunchWork& work = candidate.bound.work;
    const double saved = static_cast<double>(product.k * product.n) *
                         static_cast<double>(sizeof(float) - sizeof(uint16_t));
    work.bytes -= saved;
    work.weight_bytes -= saved;
    CountActivation(product, work);
    candidate.bound.detail = product.Detail();
  };
  // For any number of rows, although few do not fill a tile: all kernels of a device sum in one
  // order, so that a number does not fall to the other side of a rounding in another bucket.
  if (const Bf16Kernels* tiles = TileBf16KernelsFor(target.isa)) {
    add(*tiles, "amx");
    return candidates;
  }
  if (const Bf16Kernels* dot = Bf16DotKernelsFor(target.isa)) {
    add(*dot, IsaName(Isa::kAvx512Bf16));
  }
  add(Bf16KernelsFor(target.isa), IsaName(FloatTier(target.isa)));
  if (candidates.size() < 2) return candidates;
  const std::string question =
      absl::StrCat(candidates.front().option.kernel, ": ", product.Detail(), ", weights");
  for (Candidate& candidate : candidates) {
    candidate.option.question = question;
    candidate.option.order = "pairs of bfloat16";
  }
  return candidates;
}

bool RoundsToBf16(const NodeView& node) {
  return node.attributes().String(kPrecisionAttribute, "") == PrecisionName(Precision::kBf16);
}

bool RoundsToInt8(const NodeView& node) {
  return node.attributes().String(kPrecisionAttribute, "") == PrecisionName(Precision::kInt8);
}

absl::StatusOr<Tensor> RunPackBf16(const PrepareCall& call) {
  const Tensor& values = call.weight();
  const Tensor* scales = call.input(1);
  const Bf16Kernels& kernels = Bf16KernelsFor(call.target.isa);
  const bool transposed = call.attributes.Int("transposed", 0) != 0;
  const bool int8 = values.dtype() == DType::kInt8;
  if ((!int8 && values.dtype() != DType::kFloat32) || values.shape().size() != 2 ||
      call.attributes.Int("panel", 0) != kernels.panel_columns) {
    return absl::InternalError(absl::StrCat(kPackBf16Op, " of ", DTypeName(values.dtype()), " ",
                                            ShapeToString(values.shape()), " into panels of ",
                                            call.attributes.Int("panel", 0),
                                            " columns on a device of ", kernels.panel_columns));
  }
  const int64_t k = values.shape()[transposed ? 1 : 0];
  const int64_t n = values.shape()[transposed ? 0 : 1];
  if (scales != nullptr && (scales->dtype() != DType::kFloat32 ||
                            (scales->num_elements() != n && scales->num_elements() != 1))) {
    return absl::InternalError(absl::StrCat(kPackBf16Op, " of ", n, " columns with scales ",
                                            DTypeName(scales->dtype()), " ",
                                            ShapeToString(scales->shape())));
  }
  const bool scaled = call.attributes.Int("scaled", 0) != 0;
  const int64_t bytes = PackedBytes(kernels, k, n, scaled);
  std::shared_ptr<std::byte> packed = call.memory.Allocate(static_cast<size_t>(bytes));
  std::byte* to = packed.get();
  if (scaled) {
    auto* factors = reinterpret_cast<float*>(to);
    const float alpha = call.attributes.Float("scale", 1);
    const bool one = scales != nullptr && scales->num_elements() == 1;
    for (int64_t j = 0; j < ScaleFloats(kernels, n); ++j) {
      const float own =
          scales == nullptr ? 1 : static_cast<const float*>(scales->data())[one || j >= n ? 0 : j];
      factors[j] = j < n ? alpha * own : 0;
    }
    to += ScaleFloats(kernels, n) * static_cast<int64_t>(sizeof(float));
  }
  if (int8) {
    kernels.pack_int8({.data = static_cast<const int8_t*>(values.data()),
                       .ld = values.shape()[1],
                       .transposed = transposed},
                      k, n, to);
  } else {
    kernels.pack({.data = static_cast<const float*>(values.data()),
                  .ld = values.shape()[1],
                  .transposed = transposed},
                 k, n, to);
  }
  return Tensor(DType::kUInt8, {bytes}, std::move(packed));
}

}  // namespace reprise::cpu
