// Products with weights that round their rows to bytes (Precision::kInt8): reprise.Linear, MatMul
// and Gemm whose weights are bytes with a factor for each column. Each part of a launch rounds the
// rows that it multiplies, some at a time, and gives them to the products of bytes. The weights are
// packed once for each model version, by the prepare op cpu.PackByteColumns: the factors of all
// columns, their zero points, and what U8S8Kernels::pack writes.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/gemm/matmul_desc.h"
#include "runtime/device/cpu/int8/gemm_u8s8.h"
#include "runtime/device/cpu/int8/int8_plans.h"
#include "runtime/device/cpu/int8/row_bytes.h"
#include "runtime/device/cpu/simd/weight_memory.h"
#include "runtime/ops/quantized/quantize.h"
#include "runtime/ops/weights/quantized_weights.h"

namespace reprise::cpu {
namespace {

// Bytes of rows that stay in the L2 cache beside a panel, and the rows that pay for reading all
// panels once more.
constexpr int64_t kMaxRoundedBytes = 1 << 18;
constexpr int64_t kMostRounded = 384;

// Bytes between rows: whole lines, an odd number of them, so that rows do not share the same sets
// of the L1 cache.
int64_t RoundedStride(int64_t k) { return ((k + 63) / 64 | 1) * 64; }

int64_t WholeTiles(const U8S8Kernels& kernels, int64_t rows) {
  return (rows + kernels.tile_rows - 1) / kernels.tile_rows * kernels.tile_rows;
}

// Returns the most rows that are rounded at a time.
int64_t MostRounded(const U8S8Kernels& kernels, int64_t k) {
  const int64_t tile = kernels.tile_rows;
  return std::clamp(kMaxRoundedBytes / RoundedStride(k), tile, kMostRounded) / tile * tile;
}

// Returns the rows of `m` that are rounded at a time.
int64_t RoundedRows(const U8S8Kernels& kernels, int64_t m, int64_t k) {
  const int64_t most = MostRounded(kernels, k);
  const int64_t rounds = std::max<int64_t>(1, (m + most - 1) / most);
  return WholeTiles(kernels, (m + rounds - 1) / rounds);
}

// Packed weights.
struct ByteColumns {
  ByteColumns(const U8S8Kernels& kernels, int64_t k, int64_t n)
      : columns(kernels.Panels(n) * kernels.panel_columns),
        points((columns * int64_t{sizeof(float)} + 63) / 64 * 64),
        panels(points + (columns + 63) / 64 * 64),
        size(panels + kernels.PackedBytes(k, n)) {}

  int64_t columns;
  int64_t points, panels, size;  // where these begin, in bytes; factors are first
};

// Scratch of a part: rows of bytes, then their factors and zero points.
struct RoundedScratch {
  RoundedScratch(int64_t rows, int64_t k)
      : stride(RoundedStride(k)),
        scales(rows * stride),
        zeros(scales + rows * int64_t{sizeof(float)}),
        size((zeros + rows + 63) / 64 * 64) {}

  int64_t stride;
  int64_t scales, zeros, size;  // where these begin, and the end
};

struct RoundedParams {
  const U8S8Kernels* kernels = nullptr;
  const RowBytesKernels* rows = nullptr;
  Product product;
  Addends addends;
  bool weights_signed = true;
  bool points = false;  // weights have zero points
  // The operand that is the workspace, and its bytes for each of `scratch_parts` parts.
  int workspace = kNoOperand;
  int64_t scratch_bytes = 0;
  int scratch_parts = 0;
};

// Multiplies the rows of `part`, some at a time.
void MultiplyRounded(const RoundedParams& params, const float* a, std::byte* scratch, U8S8Args args,
                     const GemmPart& part) {
  const int64_t round = RoundedRows(*params.kernels, part.row_end - part.row_begin, args.k);
  const RoundedScratch at(round, args.k);
  auto* const bytes = reinterpret_cast<uint8_t*>(scratch);
  auto* const scales = reinterpret_cast<float*>(scratch + at.scales);
  auto* const zeros = reinterpret_cast<uint8_t*>(scratch + at.zeros);
  auto* const c = static_cast<float*>(args.c);
  const float* const residual = args.residual;
  args.a = bytes;
  args.lda = at.stride;
  args.a_scale = scales;
  args.a_scale_step = 1;
  args.a_zero = {zeros, 1, /*is_signed=*/false};
  for (int64_t begin = part.row_begin; begin < part.row_end; begin += round) {
    const int64_t rows = std::min(round, part.row_end - begin);
    for (int64_t r = 0; r < rows; ++r) {
      const ops::RowScale scale =
          params.rows->round(a + (begin + r) * args.k, args.k, bytes + r * at.stride);
      scales[r] = scale.scale;
      zeros[r] = static_cast<uint8_t>(scale.zero);
    }
    args.c = c + begin * args.ldc;
    args.residual = residual == nullptr ? nullptr : residual + begin * args.ld_residual;
    params.kernels->part(args, {0, rows, part.panel_begin, part.panel_end});
  }
}

void RunRounded(const LaunchArgs& args) {
  const auto& params = *static_cast<const RoundedParams*>(args.params);
  const Product& p = params.product;
  const int parts = PartsWithScratch(args, params.scratch_parts);
  if (args.part >= parts) return;
  const int64_t m = p.LiveExtent(*args.frame).rows;
  const GemmPart part = params.kernels->Partition(m, p.n, parts, args.part);
  if (part.row_begin >= part.row_end || part.panel_begin >= part.panel_end) return;
  const ByteColumns packed(*params.kernels, p.k, p.n);
  const auto* const weights = static_cast<const std::byte*>(args.operands[1]);
  const U8S8Args product = {
      .packed_b = weights + packed.panels,
      .b_signed = params.weights_signed,
      .c = args.operands[p.out],
      .ldc = p.n,
      .n = p.n,
      .k = p.k,
      .b_zero = {params.points ? weights + packed.points : nullptr, 1, params.weights_signed},
      .b_scale = reinterpret_cast<const float*>(weights),
      .b_scale_step = 1,
      .bias = FloatsAt(args, params.addends.bias),
      .residual = FloatsAt(args, params.addends.residual),
      .ld_residual = p.n,
      .activation = p.activation};
  MultiplyRounded(
      params, FloatsAt(args, 0),
      static_cast<std::byte*>(args.operands[params.workspace]) + args.part * params.scratch_bytes,
      product, part);
}

std::vector<Candidate> RoundedCandidates(const CpuTarget& target, const NodeView& node,
                                         const std::optional<Product>& product) {
  if (!RoundsToInt8(node) || !product.has_value() || !node.AllOf(DType::kFloat32) ||
      product->transposed_a || !product->weights || product->k > ops::kDeepestRounded) {
    return {};
  }
  const std::optional<Addends> addends = AddendsOf(*product);
  const std::optional<ops::QuantizedWeights> weights =
      ops::SplitQuantized(node.parameter(1), product->transposed_b ? 0 : 1);
  if (!addends.has_value() || !weights.has_value()) return {};
  std::vector<Candidate> candidates;
  const auto add = [&](const U8S8Kernels& kernels, absl::string_view tier) {
    RoundedParams params = {.kernels = &kernels,
                            .rows = &RowBytesKernelsFor(target.isa),
                            .product = *product,
                            .addends = *addends,
                            .weights_signed = weights->values->dtype() == DType::kInt8,
                            .points = weights->points != nullptr,
                            .workspace = static_cast<int>(node.num_inputs() + node.num_outputs())};
    const int64_t tiles = (product->m + kernels.tile_rows - 1) / kernels.tile_rows;
    params.scratch_parts = static_cast<int>(std::clamp<int64_t>(
        target.scratch_parts, 1, std::max<int64_t>(tiles * kernels.Panels(product->n), 1)));
    // A part has `m` rows or fewer, whose rounds may be longer.
    const int64_t most =
        std::min(MostRounded(kernels, product->k), WholeTiles(kernels, product->m));
    params.scratch_bytes = RoundedScratch(most, product->k).size;
    Candidate& candidate = candidates.emplace_back(
        MakeCandidate(target, node, "gemm_rounded_u8s8", RunRounded, params, product->flops()));
    KernelOption& option = candidate.option;
    option.kernel = absl::StrCat("gemm_rounded_u8s8_", tier);
    // Integer sums are exact in each form.
    option.order = "gemm_rounded_u8s8";
    option.workspace_bytes = static_cast<size_t>(params.scratch_parts * params.scratch_bytes);
    option.in_place = addends->residual;
    option.takes_live_rows = product->takes_live_rows();
    PrepareStep step = {.input = 1,
                        .op = kPackByteColumnsOp,
                        .attributes = {{"panel", kernels.panel_columns},
                                       {"scale", product->alpha},
                                       {"transposed", int64_t{product->transposed_b}}},
                        .dtype = DType::kUInt8,
                        .shape = {ByteColumns(kernels, product->k, product->n).size}};
    step.parts.push_back(weights->values);
    if (weights->scales != nullptr) step.parts.push_back(weights->scales);
    if (weights->points != nullptr) step.parts.push_back(weights->points);
    option.prepare.push_back(std::move(step));
    // The floats of the node are not read.
    const double saved = static_cast<double>(product->k * product->n) *
                         static_cast<double>(sizeof(float) - sizeof(int8_t));
    candidate.bound.work.bytes -= saved;
    candidate.bound.work.weight_bytes -= saved;
    CountActivation(*product, candidate.bound.work);
    candidate.bound.detail = product->Detail();
  };
  if (const U8S8Kernels* const unit = TileU8S8KernelsFor(target.isa);
      unit != nullptr && product->m >= kFewestUnitRows) {
    add(*unit, IsaName(Isa::kAmx));
  }
  add(U8S8KernelsFor(target.isa), IsaName(ByteTier(target.isa)));
  AskWhichIsFastest(target, *product, candidates);
  return candidates;
}

// `n` elements of `from`, one of which serves all where there is but one.
template <class T>
void SpreadColumns(const T* from, int64_t count, int64_t n, T* to) {
  for (int64_t j = 0; j < n; ++j) to[j] = from[count == 1 ? 0 : j];
}

}  // namespace

absl::StatusOr<Tensor> RunPackByteColumns(const PrepareCall& call) {
  const Tensor& values = call.weight();
  const Tensor* scales = call.input(1);
  const Tensor* points = call.input(2);
  const U8S8Kernels& kernels = U8S8KernelsFor(call.target.isa);
  const bool transposed = call.attributes.Int("transposed", 0) != 0;
  const bool matrix = values.shape().size() == 2;
  const int64_t k = matrix ? values.shape()[transposed ? 1 : 0] : 0;
  const int64_t n = matrix ? values.shape()[transposed ? 0 : 1] : 0;
  const auto of_columns = [n](const Tensor* factors) {
    return factors == nullptr || factors->num_elements() == n || factors->num_elements() == 1;
  };
  if (!matrix || !ops::IsByte(values.dtype()) || !of_columns(scales) || !of_columns(points) ||
      (scales != nullptr && scales->dtype() != DType::kFloat32) ||
      (points != nullptr && points->dtype() != values.dtype()) ||
      call.attributes.Int("panel", 0) != kernels.panel_columns) {
    return absl::InternalError(absl::StrCat(
        kPackByteColumnsOp, " of ", DTypeName(values.dtype()), " ", ShapeToString(values.shape()),
        " with scales ", scales == nullptr ? "none" : ShapeToString(scales->shape()),
        " into panels of ", call.attributes.Int("panel", 0), " columns on a device of ",
        kernels.panel_columns));
  }
  const ByteColumns packed(kernels, k, n);
  std::shared_ptr<std::byte> bytes = call.memory.Allocate(static_cast<size_t>(packed.size));
  std::memset(bytes.get(), 0, static_cast<size_t>(packed.panels));
  auto* const factors = reinterpret_cast<float*>(bytes.get());
  const float one = 1;
  SpreadColumns(scales == nullptr ? &one : static_cast<const float*>(scales->data()),
                scales == nullptr ? 1 : scales->num_elements(), n, factors);
  const float alpha = call.attributes.Float("scale", 1);
  for (int64_t j = 0; j < n; ++j) factors[j] *= alpha;
  if (points != nullptr) {
    SpreadColumns(static_cast<const std::byte*>(points->data()), points->num_elements(), n,
                  bytes.get() + packed.points);
  }
  const void* rows = values.data();
  std::vector<std::byte> turned;
  if (transposed) {
    turned.resize(static_cast<size_t>(k * n));
    const auto* const from = static_cast<const std::byte*>(rows);
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < k; ++i) turned[static_cast<size_t>(i * n + j)] = from[j * k + i];
    }
    rows = turned.data();
  }
  kernels.pack({.data = rows, .ld = n, .is_signed = values.dtype() == DType::kInt8},
               /*a_signed=*/false, k, n, bytes.get() + packed.panels);
  return Tensor(DType::kUInt8, {packed.size}, std::move(bytes));
}

std::vector<Candidate> PlanRoundedLinear(const CpuTarget& target, const NodeView& node) {
  return RoundedCandidates(target, node, LinearProduct(node));
}

std::vector<Candidate> PlanRoundedMatMul(const CpuTarget& target, const NodeView& node) {
  return RoundedCandidates(target, node, MatMulProduct(node));
}

std::vector<Candidate> PlanRoundedGemm(const CpuTarget& target, const NodeView& node) {
  return RoundedCandidates(target, node, GemmProduct(node));
}

}  // namespace reprise::cpu
