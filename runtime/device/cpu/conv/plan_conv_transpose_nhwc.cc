// Transposed convolutions of planes whose channels lie last: the convolutions that they consist of
// (conv_phases.h), whose windows are the rows of products with the packed weights of a phase. The
// sums of a block of windows are finished in the cache and go from there to every stride-th place
// of the result, the maps of a place side by side.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/conv/conv_phases.h"
#include "runtime/device/cpu/conv/conv_plans.h"
#include "runtime/device/cpu/conv/im2col_rows.h"
#include "runtime/device/cpu/conv/plan_conv.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/simd/weight_memory.h"
#include "runtime/ops/windows/conv.h"
#include "runtime/ops/windows/conv_op.h"

namespace reprise::cpu {
namespace {

// Panels of weights whose results are held at a time.
constexpr int64_t kHeldPanels = 4;
// The least size of the packed weights, which are empty where no element reaches any place.
constexpr int64_t kFewestFloats = 16;

struct PhaseOfLast {
  WindowRows rows;
  int64_t first_row = 0, first_column = 0;  // where its results begin
  int64_t weights = 0;                      // where its packed weights begin
  int64_t first_block = 0, blocks = 0;
  bool has_taps = true;  // else no element reaches its places

  int64_t depth() const { return has_taps ? rows.depth() : 0; }
};

struct ConvTransposeLastParams : ConvLaunch {
  const GemmKernels* products = nullptr;
  std::vector<PhaseOfLast> phases;
  int64_t blocks = 0;               // blocks of one element of the batch
  int64_t maps = 0, in_floats = 0;  // in_floats: of an element of the batch
  int64_t out_rows = 1, out_columns = 1;
  int64_t stride_rows = 1, stride_columns = 1;
  int64_t block = 0;  // windows at a time
  int64_t rows_floats = 0;

  int64_t sums_ld() const { return kHeldPanels * products->panel_columns; }
};

// Moves some maps of windows of a phase to their places; `out` is the first map of the result.
void SpreadMaps(const ConvTransposeLastParams& p, const PhaseOfLast& phase,
                const WindowRows::Range& windows, const float* sums, int64_t maps, float* out) {
  const int64_t columns = phase.rows.strips.out.columns;
  for (int64_t i = 0; i < windows.count; ++i, sums += p.sums_ld()) {
    const int64_t window = windows.first + i;
    const int64_t row = phase.first_row + window / columns * p.stride_rows;
    const int64_t column = phase.first_column + window % columns * p.stride_columns;
    std::copy_n(sums, maps, out + (row * p.out_columns + column) * p.maps);
  }
}

// Computes windows `windows` of a phase; `at` belongs to one element of the batch.
void MakeBlock(const ConvTransposeLastParams& p, const PhaseOfLast& phase, const ConvOperands& at,
               const WindowRows::Range& windows) {
  float* const sums = at.scratch + p.rows_floats;
  const int64_t width = p.products->panel_columns, depth = phase.depth();
  const float* const rows = phase.has_taps ? phase.rows.Of(at.x, windows, at.scratch) : nullptr;
  for (int64_t map = 0; map < p.maps; map += p.sums_ld()) {
    const int64_t maps = std::min(p.sums_ld(), p.maps - map);
    if (phase.has_taps) {
      p.products->part({.a = rows,
                        .lda = phase.rows.row_floats,
                        .packed_b = at.weights + phase.weights + map * depth,
                        .c = sums,
                        .ldc = p.sums_ld(),
                        .n = maps,
                        .k = depth,
                        .bias = at.BiasOf(map)},
                       {0, windows.count, 0, (maps + width - 1) / width});
    } else {
      for (int64_t i = 0; i < windows.count; ++i) {
        float* const to = sums + i * p.sums_ld();
        at.bias == nullptr ? std::fill_n(to, maps, 0.0f) : std::copy_n(at.bias + map, maps, to);
      }
    }
    p.finish({.y = sums, .ld = p.sums_ld(), .rows = windows.count, .columns = maps}, p.activation);
    SpreadMaps(p, phase, windows, sums, maps, at.out + map);
  }
}

// Runs units: a unit is a block of the windows of a phase of one element of the batch.
void RunConvTransposeLast(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ConvTransposeLastParams*>(launch.params);
  const int64_t units = p.Live(launch) * p.blocks;
  const int parts = p.Parts(launch, units);
  if (launch.part >= parts) return;
  const ConvOperands all = p.Operands(launch);
  const ItemRange range = RangeOfPart(units, 1, launch.part, parts);
  for (int64_t unit = range.begin; unit < range.end; ++unit) {
    const int64_t element = unit / p.blocks, index = unit % p.blocks;
    const auto next = std::upper_bound(
        p.phases.begin(), p.phases.end(), index,
        [](int64_t at, const PhaseOfLast& phase) { return at < phase.first_block; });
    const PhaseOfLast& phase = *std::prev(next);
    const int64_t first = (index - phase.first_block) * p.block;
    ConvOperands at = all;
    at.x += element * p.in_floats;
    at.out += element * p.out_rows * p.out_columns * p.maps;
    MakeBlock(p, phase, at, {first, std::min(p.block, phase.rows.out_plane() - first)});
  }
}

}  // namespace

std::vector<Candidate> PlanConvTransposeLast(const CpuTarget& target, const NodeView& node) {
  constexpr size_t kMaxDims = 2;
  const std::optional<ConvActivation> activation = ConvActivationOf(node.attributes());
  const Shape &of_node = node.shape(0), &weight = node.shape(1);
  if (!activation.has_value() || NumElements(node.out_shape()) == 0 || NumElements(of_node) == 0 ||
      of_node.size() > kMaxDims + 2 || !node.is_parameter(1) ||
      ConvTransposeOp::From(node.attributes()).group != 1) {
    return {};
  }
  const Shape x = ops::ChannelsFirst(of_node);
  const absl::StatusOr<ops::TransposedWindows> transposed = ops::TransposedWindowsOf(
      node.node(), x, std::vector<int64_t>(weight.begin() + 2, weight.end()));
  if (!transposed.ok()) return {};
  const Shape spatial(x.begin() + 2, x.end());
  const ops::Windows& w = transposed->windows;
  ConvTransposeLastParams p{ConvLaunch(target, node, *activation)};
  p.products = &GemmKernelsFor(target.isa);
  p.maps = weight[1];
  p.in_floats = NumElements(x) / x[0];
  p.out_columns = transposed->spatial.back();
  p.out_rows = NumElements(transposed->spatial) / p.out_columns;
  p.stride_columns = w.strides.back();
  p.stride_rows = w.strides.size() > 1 ? w.strides[0] : 1;
  p.block = kMaxConvRows;
  int64_t weights = 0;
  for (const ConvPhase& of : PhasesOf(*transposed)) {
    if (NumElements(of.windows.out) == 0) continue;
    PhaseOfLast phase;
    phase.has_taps = of.taps() > 0;
    phase.rows = WindowRowsOf(StripsOf(of.windows, spatial), 1, x[1], p.block);
    phase.first_column = of.first.back();
    phase.first_row = of.first.size() > 1 ? of.first[0] : 0;
    phase.weights = weights;
    phase.first_block = p.blocks;
    phase.blocks = (phase.rows.out_plane() + p.block - 1) / p.block;
    if (phase.has_taps) {
      weights += p.products->PackedFloats(phase.depth(), p.maps);
      p.rows_floats = std::max(p.rows_floats, phase.rows.scratch_floats);
    }
    p.blocks += phase.blocks;
    p.phases.push_back(std::move(phase));
  }
  weights = std::max(weights, kFewestFloats);
  p.scratch_floats = p.rows_floats + p.block * p.sums_ld();
  const double flops =
      2.0 * static_cast<double>(NumElements(x) / x[1]) * static_cast<double>(NumElements(weight));
  Attributes attributes(
      {{"strides", w.strides},
       {"dilations", w.dilations},
       {"pads", w.pad_begin},
       {"spatial", std::vector<int64_t>(transposed->spatial.begin(), transposed->spatial.end())},
       {"panel", p.products->panel_columns}});
  PrepareStep pack = {.input = 1,
                      .op = kPackPhasesOp,
                      .attributes = std::move(attributes),
                      .dtype = DType::kUInt8,
                      .shape = {static_cast<int64_t>(sizeof(float)) * weights}};
  return ConvCandidates(target, node, "conv_transpose_last", RunConvTransposeLast, std::move(p),
                        flops, {std::move(pack)});
}

absl::StatusOr<Tensor> RunPackPhases(const PrepareCall& call) {
  const Tensor& weights = call.weight();
  const GemmKernels& gemm = GemmKernelsFor(call.target.isa);
  const Shape& shape = weights.shape();
  ops::TransposedWindows t;
  t.windows.strides = call.attributes.Ints("strides");
  t.windows.dilations = call.attributes.Ints("dilations");
  t.windows.pad_begin = call.attributes.Ints("pads");
  const std::vector<int64_t> spatial = call.attributes.Ints("spatial");
  t.spatial.assign(spatial.begin(), spatial.end());
  const size_t dims = t.windows.strides.size();
  if (weights.dtype() != DType::kFloat32 || shape.size() != dims + 2 ||
      call.attributes.Int("panel", 0) != gemm.panel_columns) {
    return absl::InternalError(absl::StrCat(kPackPhasesOp, " of ", DTypeName(weights.dtype()), " ",
                                            ShapeToString(shape), " in ", dims, " dims"));
  }
  t.windows.kernel.assign(shape.begin() + 2, shape.end());
  const std::vector<ConvPhase> phases = PhasesOf(t);
  const int64_t channels = shape[0], maps = shape[1];
  std::vector<float> split(weights.num_elements());
  SplitIntoPhases(phases, shape, 1, weights.span<float>().data(), split.data());
  int64_t floats = 0;
  const auto has_results = [](const ConvPhase& phase) {
    return phase.taps() > 0 && NumElements(phase.windows.out) > 0;
  };
  for (const ConvPhase& phase : phases) {
    if (has_results(phase)) floats += gemm.PackedFloats(channels * phase.taps(), maps);
  }
  floats = std::max(floats, kFewestFloats);
  const int64_t bytes = floats * static_cast<int64_t>(sizeof(float));
  std::shared_ptr<std::byte> packed = call.memory.Allocate(static_cast<size_t>(bytes));
  auto* to = reinterpret_cast<float*>(packed.get());
  const float* from = split.data();
  for (const ConvPhase& phase : phases) {
    const int64_t depth = channels * phase.taps();
    if (has_results(phase)) {
      const std::vector<float> by_tap = TapsFirst(from, maps, depth, phase.taps());
      gemm.pack({.data = by_tap.data(), .ld = depth, .transposed = true}, depth, maps, 1, to);
      to += gemm.PackedFloats(depth, maps);
    }
    from += maps * depth;
  }
  return Tensor(DType::kUInt8, {bytes}, std::move(packed));
}

}  // namespace reprise::cpu
