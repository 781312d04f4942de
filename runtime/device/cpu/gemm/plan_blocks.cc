// Products with weights of a few bits, which stay as they are stored: see gemm_blocks.h.
#include "absl/strings/str_cat.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/cpu/gemm/block_weights.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/gemm/gemm_bf16.h"
#include "runtime/device/cpu/gemm/gemm_block_digits.h"
#include "runtime/device/cpu/gemm/gemm_blocks.h"
#include "runtime/device/cpu/gemm/gemm_plans.h"
#include "runtime/device/cpu/gemm/matmul_desc.h"
#include "runtime/device/cpu/simd/weight_memory.h"
#include "runtime/ops/kit/precision.h"
#include "runtime/ops/products/round_rows.h"

namespace reprise::cpu {
namespace {

struct BlockParams {
  const BlockGemmKernels* kernels = nullptr;
  const BlockDigitKernels* digits = nullptr;  // or these
  const Bf16BlockKernels* halves = nullptr;   // or these
  const Bf16Kernels* tiles = nullptr;         // take panels that `halves` widens
  BlockForm form;
  Product product;
  // Positions among the operands.
  Addends addends;
  int workspace = kNoOperand;
  const GemmKernels* floats = nullptr;  // divide the work; with a workspace, multiply panels
  // The layout of the workspace.
  int64_t panels = 1;         // panels at a time
  int64_t rounded_block = 0;  // the elements that are rounded together, see kRoundedBlockAttribute
  int64_t scratch_bytes = 0;
  int scratch_parts = 0;
};

// The tile unit converts A's rows once for all panels of a call: this many bytes of widened panels,
// which stay in the L2 cache at least in part.
constexpr int64_t kWidenedBytes = 2 << 20;
constexpr int64_t kMostWidened = 16;  // panels

GemmPart PartOf(const BlockParams& params, const LaunchArgs& args, int parts) {
  const int64_t rows = params.product.LiveExtent(*args.frame).rows;
  return params.floats->Partition(rows, params.product.n, /*int8=*/false, parts, args.part);
}

void RunBlocks(const LaunchArgs& args) {
  const auto& params = *static_cast<const BlockParams*>(args.params);
  const GemmPart part = PartOf(params, args, args.parts);
  params.kernels->part(GemmArgsOf(params.product, params.addends, args), params.form, part);
}

// Rows become digits, or bfloat16, in the scratch of each part.
template <auto BlockParams::*kernels>
void RunWithScratch(const LaunchArgs& args) {
  const auto& params = *static_cast<const BlockParams*>(args.params);
  const int parts = PartsWithScratch(args, params.scratch_parts);
  if (args.part >= parts) return;
  GemmArgs gemm = GemmArgsOf(params.product, params.addends, args);
  gemm.scratch =
      static_cast<std::byte*>(args.operands[params.workspace]) + args.part * params.scratch_bytes;
  (params.*kernels)->part(gemm, params.form, PartOf(params, args, parts));
}

// Rows are rounded a few at a time, for kernels that multiply floats.
constexpr int64_t kRoundedRows = 16;
void RunRoundedFloats(const LaunchArgs& args) {
  const auto& params = *static_cast<const BlockParams*>(args.params);
  const int parts = PartsWithScratch(args, params.scratch_parts);
  if (args.part >= parts) return;
  const GemmPart part = PartOf(params, args, parts);
  if (part.panel_begin == part.panel_end) return;
  const GemmArgs whole = GemmArgsOf(params.product, params.addends, args);
  auto* const rounded = reinterpret_cast<float*>(
      static_cast<std::byte*>(args.operands[params.workspace]) + args.part * params.scratch_bytes);
  for (int64_t begin = part.row_begin; begin < part.row_end; begin += kRoundedRows) {
    const int64_t rows = std::min(kRoundedRows, part.row_end - begin);
    ops::RoundRows(whole.a + begin * whole.lda, rows, whole.k, params.rounded_block, rounded);
    GemmArgs some = whole;
    some.a = rounded;
    some.c += begin * whole.ldc;
    if (some.residual != nullptr) some.residual += begin * whole.ld_residual;
    params.kernels->part(some, params.form, {0, rows, part.panel_begin, part.panel_end});
  }
}

// Widens a few panels after the others to floats, for kernels that know nothing else.
void RunWidened(const LaunchArgs& args) {
  const auto& params = *static_cast<const BlockParams*>(args.params);
  const int parts = PartsWithScratch(args, params.scratch_parts);
  if (args.part >= parts) return;
  const GemmPart part = PartOf(params, args, parts);
  if (part.row_begin == part.row_end) return;
  const GemmArgs whole = GemmArgsOf(params.product, params.addends, args);
  const int64_t columns = params.kernels->panel_columns;
  auto* const widened = reinterpret_cast<float*>(
      static_cast<std::byte*>(args.operands[params.workspace]) + args.part * params.scratch_bytes);
  for (int64_t first = part.panel_begin; first < part.panel_end; first += params.panels) {
    const int64_t panels = std::min(params.panels, part.panel_end - first);
    for (int64_t i = 0; i < panels; ++i) {
      params.kernels->widen(whole.packed_b, params.form, whole.k, first + i,
                            widened + i * columns * whole.k);
    }
    GemmArgs some = whole;
    some.packed_b = widened;
    some.scratch = widened + params.panels * columns * whole.k;
    some.n = std::min(panels * columns, whole.n - first * columns);
    some.c += first * columns;
    if (some.bias != nullptr) some.bias += first * columns;
    if (some.residual != nullptr) some.residual += first * columns;
    params.floats->part(some, {part.row_begin, part.row_end, 0, panels});
  }
}

// Widens panels to bfloat16 where RunWidened widens to floats.
void RunWidenedHalves(const LaunchArgs& args) {
  const auto& params = *static_cast<const BlockParams*>(args.params);
  const int parts = PartsWithScratch(args, params.scratch_parts);
  if (args.part >= parts) return;
  const Bf16Kernels& tiles = *params.tiles;
  const int64_t rows = params.product.LiveExtent(*args.frame).rows;
  const GemmPart part = tiles.Partition(rows, params.product.n, parts, args.part);
  if (part.row_begin == part.row_end) return;
  const GemmArgs whole = GemmArgsOf(params.product, params.addends, args);
  const int64_t columns = tiles.panel_columns;
  const int64_t panel_bytes = tiles.PackedBytes(whole.k, columns);
  std::byte* const widened =
      static_cast<std::byte*>(args.operands[params.workspace]) + args.part * params.scratch_bytes;
  for (int64_t first = part.panel_begin; first < part.panel_end; first += params.panels) {
    const int64_t panels = std::min(params.panels, part.panel_end - first);
    for (int64_t i = 0; i < panels; ++i) {
      params.halves->widen(whole.packed_b, params.form, whole.k, first + i,
                           widened + i * panel_bytes);
    }
    GemmArgs some = whole;
    some.packed_b = widened;
    some.scratch = widened + params.panels * panel_bytes;
    some.n = std::min(panels * columns, whole.n - first * columns);
    some.c += first * columns;
    if (some.bias != nullptr) some.bias += first * columns;
    if (some.residual != nullptr) some.residual += first * columns;
    tiles.part(some, nullptr, {part.row_begin, part.row_end, 0, panels});
  }
}

PrepareStep PackStep(const BlockWeights& weights, const BlockParams& params, int64_t panel,
                     int64_t bytes) {
  const BlockForm& form = params.form;
  PrepareStep step = {.input = 1,
                      .op = kPackBlocksOp,
                      .attributes = {{"bf16", int64_t{params.halves != nullptr}},
                                     {"bits", int64_t{weights.bits}},
                                     {"block", weights.block},
                                     {"digits", int64_t{params.digits != nullptr}},
                                     {"k", params.product.k},
                                     {"kept_bits", int64_t{form.bits}},
                                     {"offsets", int64_t{form.offsets}},
                                     {"panel", panel},
                                     {"point", int64_t{weights.point}},
                                     {"points", int64_t{form.points}}},
                      .dtype = DType::kUInt8,
                      .shape = {bytes}};
  step.parts = {weights.numbers, weights.scales};
  if (weights.points != nullptr) step.parts.push_back(weights.points);
  return step;
}

// Returns zero points as floats, [n, blocks]; `offset` is added to each.
absl::StatusOr<std::vector<float>> PointsOf(const Tensor& points, int64_t n, int64_t blocks,
                                            int bits, float offset) {
  std::vector<float> floats(static_cast<size_t>(n * blocks));
  const bool packed = points.dtype() == DType::kUInt8 && bits < 8;
  const int64_t row = n == 0 ? 0 : points.num_elements() / n;
  if (row < (packed ? (blocks * bits + 7) / 8 : blocks)) {
    return absl::InternalError(absl::StrCat(kPackBlocksOp, ": ", ShapeToString(points.shape()),
                                            " zero points of ", blocks, " blocks"));
  }
  const auto fill = [&](const auto* data) {
    for (int64_t i = 0; i < n * blocks; ++i) {
      floats[static_cast<size_t>(i)] = static_cast<float>(data[i]) + offset;
    }
  };
  if (points.dtype() == DType::kFloat32) {
    fill(static_cast<const float*>(points.data()));
  } else if (points.dtype() == DType::kInt8) {
    fill(static_cast<const int8_t*>(points.data()));
  } else if (!packed) {
    fill(static_cast<const uint8_t*>(points.data()));
  } else {
    float* to = floats.data();
    for (int64_t column = 0; column < n; ++column) {
      const uint8_t* const bytes = static_cast<const uint8_t*>(points.data()) + column * row;
      for (int64_t bit = 0; bit < blocks * bits; bit += bits) {
        const int point = bytes[bit / 8] >> (bit % 8) & ((1 << bits) - 1);
        *to++ = static_cast<float>(point) + offset;
      }
    }
  }
  return floats;
}

// Returns whether products of bytes take these weights.
bool SuitsDigits(const BlockWeights& weights) {
  const bool whole =
      weights.points == nullptr || weights.offsets || weights.points->dtype() != DType::kFloat32;
  return whole && DigitBlocks::LengthFor(weights.Form()) > 0;
}

}  // namespace

absl::StatusOr<Tensor> RunPackBlocks(const PrepareCall& call) {
  const Tensor& numbers = call.weight();
  const Tensor& scales = *call.inputs[1];
  const Tensor* points = call.input(2);
  const BlockGemmKernels& kernels = BlockGemmKernelsFor(call.target.isa);
  const BlockDigitKernels* const digits =
      call.attributes.Int("digits", 0) != 0 ? BlockDigitKernelsFor(call.target.isa) : nullptr;
  const Bf16BlockKernels* const halves =
      call.attributes.Int("bf16", 0) != 0 ? Bf16BlockKernelsFor(call.target.isa) : nullptr;
  const int64_t panel = digits != nullptr   ? digits->division.panel_columns
                        : halves != nullptr ? halves->division.panel_columns
                                            : kernels.panel_columns;
  const int64_t k = call.attributes.Int("k", 0);
  const bool is_signed = numbers.dtype() == DType::kInt8;
  BlockSource source = {.numbers = static_cast<const uint8_t*>(numbers.data()),
                        .bits = static_cast<int>(call.attributes.Int("bits", 0)),
                        .scales = static_cast<const float*>(scales.data())};
  const BlockForm form = {.bits = static_cast<int>(call.attributes.Int("kept_bits", 0)),
                          .block = call.attributes.Int("block", 1),
                          .points = call.attributes.Int("points", 0) != 0,
                          .offsets = call.attributes.Int("offsets", 0) != 0};
  const int64_t n = numbers.shape().size() == 2 ? numbers.shape()[0] : 0;
  source.row_bytes = n == 0 ? 0 : numbers.num_elements() / n;
  const bool known = (source.bits == 2 || source.bits == 4 || source.bits == 8) &&
                     (form.bits == 4 || form.bits == 8) && form.block > 0;
  if (!known || numbers.shape().size() != 2 || scales.dtype() != DType::kFloat32 ||
      call.attributes.Int("panel", 0) != panel || form.offsets > (points != nullptr) || k <= 0 ||
      source.row_bytes * 8 < k * source.bits ||
      (scales.num_elements() != n * form.Blocks(k) && scales.num_elements() != 1)) {
    return absl::InternalError(absl::StrCat(
        kPackBlocksOp, " of ", DTypeName(numbers.dtype()), " ", ShapeToString(numbers.shape()),
        " with scales ", ShapeToString(scales.shape()), ", ", k, " deep, into panels of ",
        call.attributes.Int("panel", 0), " columns on a device of ", panel));
  }
  std::vector<float> same;
  if (scales.num_elements() == 1) {
    same.assign(static_cast<size_t>(n * form.Blocks(k)), *source.scales);
    source.scales = same.data();
  }
  source.offset = is_signed ? 1 << (form.bits - 1) : 0;
  std::vector<float> floats;
  if (points != nullptr) {
    ASSIGN_OR_RETURN(floats, PointsOf(*points, n, form.Blocks(k), source.bits,
                                      static_cast<float>(source.offset)));
  } else if (form.points) {
    floats.assign(static_cast<size_t>(n * form.Blocks(k)),
                  static_cast<float>(call.attributes.Int("point", 0) + source.offset));
  }
  if (form.points || form.offsets) source.points = floats.data();
  const int64_t bytes = digits != nullptr   ? digits->packed_bytes(k, n, form)
                        : halves != nullptr ? halves->packed_bytes(k, n, form)
                                            : kernels.PackedBytes(k, n, form);
  std::shared_ptr<std::byte> packed = call.memory.Allocate(static_cast<size_t>(bytes));
  const auto pack = digits != nullptr   ? digits->pack
                    : halves != nullptr ? halves->pack
                                        : kernels.pack;
  pack(source, form, k, n, packed.get());
  return Tensor(DType::kUInt8, {bytes}, std::move(packed));
}

std::vector<Candidate> BlockCandidates(const CpuTarget& target, const NodeView& node,
                                       const Product& product, const PanelKernels& tiles) {
  if (!product.weights || product.alpha != 1 || product.transposed_a ||
      !node.AllOf(DType::kFloat32)) {
    return {};
  }
  const std::optional<Addends> addends = AddendsOf(product);
  const int64_t axis = product.transposed_b ? 0 : 1;
  const Bf16BlockKernels* const halves =
      RoundsToBf16(node) ? Bf16BlockKernelsFor(target.isa) : nullptr;
  std::optional<BlockWeights> weights = SplitBlocks(node.parameter(1), axis);
  // The tile unit takes weights of a factor for each column as bytes that it rounds without it.
  if (!weights.has_value() && halves != nullptr && tiles.halves == nullptr) {
    weights = SplitColumns(node.parameter(1), axis);
  }
  if (!addends.has_value() || !weights.has_value()) return {};
  const bool rounded = RoundsToInt8(node);
  const BlockParams usual = {.kernels = &BlockGemmKernelsFor(target.isa),
                             .form = weights->Form(),
                             .product = product,
                             .addends = *addends,
                             .floats = &GemmKernelsFor(target.isa)};
  int64_t panel = usual.kernels->panel_columns;
  int64_t bytes = usual.kernels->PackedBytes(product.k, product.n, usual.form);
  std::vector<Candidate> candidates;
  const auto add = [&](absl::string_view name, KernelFn run,
                       const BlockParams& params) -> Candidate& {
    Candidate& candidate =
        candidates.emplace_back(MakeCandidate(target, node, name, run, params, product.flops()));
    candidate.option.prepare.push_back(PackStep(*weights, params, panel, bytes));
    candidate.option.workspace_bytes =
        static_cast<size_t>(params.scratch_parts * params.scratch_bytes);
    candidate.option.in_place = addends->residual;
    candidate.option.takes_live_rows = product.takes_live_rows();
    // The floats of the node's weights were never made.
    const double saved =
        static_cast<double>(product.k * product.n * int64_t{sizeof(float)} - bytes);
    candidate.bound.work.bytes -= saved;
    candidate.bound.work.weight_bytes -= saved;
    CountActivation(product, candidate.bound.work);
    candidate.bound.detail =
        absl::StrCat(product.Detail(), ", ", params.form.bits, " bits a weight");
    return candidate;
  };
  // Returns the most parts that have work, of rows and panels as `division` has them.
  const auto parts_of = [&](int64_t tile_rows, int64_t panels) {
    return static_cast<int>(
        std::min<int64_t>(target.scratch_parts, (product.m + tile_rows - 1) / tile_rows * panels));
  };
  const auto add_with_scratch = [&](absl::string_view name, KernelFn run, BlockParams params,
                                    const auto& kernels) -> Candidate& {
    const GemmKernels& division = kernels.division;
    params.floats = &division;
    params.workspace = static_cast<int>(node.num_inputs() + node.num_outputs());
    params.scratch_bytes = kernels.scratch_bytes(product.m, product.k, usual.form);
    panel = division.panel_columns;
    bytes = kernels.packed_bytes(product.k, product.n, usual.form);
    params.scratch_parts = parts_of(division.tile_rows, division.Panels(product.n));
    return add(name, run, params);
  };
  if (halves != nullptr) {
    BlockParams params = usual;
    params.halves = halves;
    params.tiles = tiles.halves;
    if (params.tiles == nullptr) {
      add_with_scratch("gemm_blocks_bf16", RunWithScratch<&BlockParams::halves>, params, *halves);
      return candidates;
    }
    const Bf16Kernels& unit = *params.tiles;
    panel = halves->division.panel_columns;
    bytes = halves->packed_bytes(product.k, product.n, usual.form);
    params.workspace = static_cast<int>(node.num_inputs() + node.num_outputs());
    const int64_t panel_bytes = unit.PackedBytes(product.k, panel);
    params.panels = std::clamp<int64_t>(kWidenedBytes / panel_bytes, 1, kMostWidened);
    params.scratch_bytes = static_cast<int64_t>(AlignUp(static_cast<size_t>(
        params.panels * panel_bytes + unit.part_scratch_bytes(product.m, product.k))));
    params.scratch_parts = parts_of(unit.tile_rows, unit.Panels(product.n));
    add("gemm_blocks_bf16_amx", RunWidenedHalves, params);
    return candidates;
  }
  const bool digits = SuitsDigits(*weights) && BlockDigitKernelsFor(target.isa) != nullptr;
  if (digits) {
    const auto add_digits = [&](absl::string_view name, const BlockDigitKernels& kernels) {
      BlockParams params = usual;
      params.digits = &kernels;
      // The tile unit and vectors give the same bits.
      add_with_scratch(name, RunWithScratch<&BlockParams::digits>, params, kernels).option.order =
          "digits by blocks";
    };
    const BlockDigitKernels* const unit = TileBlockDigitKernelsFor(target.isa, rounded);
    if (unit != nullptr && product.m >= kFewestUnitRows) {
      add_digits(rounded ? "gemm_rounded_blocks_amx" : "gemm_blocks_digits_amx", *unit);
    }
    add_digits(rounded ? "gemm_rounded_blocks_vnni" : "gemm_blocks_vnni",
               *BlockDigitKernelsFor(target.isa, rounded));
    return candidates;
  }
  if (rounded) {
    BlockParams params = usual;
    params.rounded_block = node.attributes().Int(kRoundedBlockAttribute, 0);
    params.workspace = static_cast<int>(node.num_inputs() + node.num_outputs());
    params.scratch_bytes = kRoundedRows * product.k * int64_t{sizeof(float)};
    params.scratch_parts = target.scratch_parts;
    add("gemm_rounded_blocks", RunRoundedFloats, params);
    return candidates;
  }
  const GemmKernels* const unit = tiles.floats;
  if (unit != nullptr && !target.one_order && SuitsTiles(product, /*int8=*/false)) {
    BlockParams widened = usual;
    widened.floats = unit;
    widened.workspace = static_cast<int>(node.num_inputs() + node.num_outputs());
    const int64_t panel_bytes = panel * product.k * int64_t{sizeof(float)};
    widened.panels = std::clamp<int64_t>(kWidenedBytes / panel_bytes, 1, kMostWidened);
    widened.scratch_bytes =
        widened.panels * panel_bytes + unit->PartScratchBytes(product.m, product.k, /*int8=*/false);
    widened.scratch_parts = parts_of(unit->tile_rows, unit->Panels(product.n));
    add("gemm_blocks_amx", RunWidened, widened);
  }
  add("gemm_blocks", RunBlocks, usual);
  return candidates;
}

}  // namespace reprise::cpu
