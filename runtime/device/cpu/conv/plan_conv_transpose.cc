// Transposed convolutions as the products of the convolutions that they consist of (conv_phases.h),
// each of which makes panels of the elements of its windows, as plan_conv.cc does.
//
// The sums of a block of windows are finished in the L1 cache and go from there to every stride-th
// element of the result. Every element is summed in the order of channels and taps, so that no
// division of the work changes a bit.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/cpu/conv/conv_phases.h"
#include "runtime/device/cpu/conv/conv_plans.h"
#include "runtime/device/cpu/conv/plan_conv.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/simd/weight_memory.h"
#include "runtime/ops/windows/conv_op.h"

namespace reprise::cpu {
namespace {

constexpr int64_t kFinishFloats = 8 << 10;
// With more phases than this, the plain loops take over.
constexpr int64_t kMaxPhases = 4096;

// Slices, rows and columns; dims that are not there are 1.
struct Place {
  int64_t slice = 0, row = 0, column = 0;
};

struct Phase {
  ConvWindows windows;  // none without taps
  Place first;
  int64_t out_slices = 1, out_rows = 1, out_columns = 1;
  int64_t weights = 0;  // where its weights begin
  int64_t first_piece = 0;
  int64_t blocks = 1;   // blocks in a plane
  int64_t sums_ld = 0;  // floats from a map to the next
  bool has_taps = true;

  int64_t depth() const { return has_taps ? windows.depth() : 0; }
  ConvWindows::Block BlockOf(int64_t index) const {
    if (has_taps) return windows.BlockOf(index);
    return {index * out_columns, out_columns, index, index + 1, 0};
  }
  // Maps whose sums are held at a time: all, where a sum is added up stretch by stretch.
  int64_t MapStep(int64_t columns, int64_t tile_rows) const {
    if (has_taps && windows.stretch < windows.channels) return INT64_MAX;
    return std::max<int64_t>(1, kFinishFloats / columns / tile_rows) * tile_rows;
  }
};

// Block `block` of slice `slice` of a phase.
struct Piece {
  const Phase* phase;
  int64_t slice, block;
};

struct TransposeParams : ConvLaunch {
  const GemmKernels* products = nullptr;
  std::vector<Phase> phases;
  int64_t pieces = 0;  // pieces of a group of one element of the batch
  int64_t groups = 1, group_maps = 0;
  int64_t in_floats = 0;  // floats of a group of one element of the batch
  Place out, stride = {1, 1, 1};
  // The phases that each part splits the weights into; empty: they are split already.
  std::vector<ConvPhase> split;
  Shape weight;
  int64_t weights_floats = 0, copy_floats = 0, panel_floats = 0, sums_floats = 0;

  int64_t map_tiles() const { return (group_maps + products->tile_rows - 1) / products->tile_rows; }
  int64_t map_floats() const { return out.slice * out.row * out.column; }
  // They may be too many to be listed.
  Piece PieceOf(int64_t index) const {
    const auto next =
        std::upper_bound(phases.begin(), phases.end(), index,
                         [](int64_t at, const Phase& phase) { return at < phase.first_piece; });
    const Phase& phase = *std::prev(next);
    const int64_t rest = index - phase.first_piece;
    return {&phase, rest / phase.blocks, rest % phase.blocks};
  }
};

// Moves the sums of windows of a block, `maps` rows of them, to their places.
void SpreadBlock(const TransposeParams& p, const Phase& phase, int64_t slice,
                 const ConvWindows::Block& block, const float* sums, int64_t maps, float* out) {
  const int64_t columns = phase.out_columns, step = p.stride.column;
  float* const plane =
      out +
      ((phase.first.slice + slice * p.stride.slice) * p.out.row + phase.first.row) * p.out.column +
      phase.first.column;
  for (int64_t map = 0; map < maps; ++map) {
    const float* from = sums + map * phase.sums_ld;
    float* const to_map = plane + map * p.map_floats();
    for (int64_t at = 0, length; at < block.count; at += length, from += length) {
      const int64_t row = (block.first + at) / columns, column = (block.first + at) % columns;
      length = std::min(block.count - at, columns - column);
      float* to = to_map + row * p.stride.row * p.out.column + column * step;
      if (step == 1) {
        std::copy_n(from, length, to);
      } else {
        for (int64_t i = 0; i < length; ++i) to[i * step] = from[i];
      }
    }
  }
}

// Makes the first `maps` maps of a piece, with which weights, bias and result of `at` begin.
void MakePiece(const TransposeParams& p, const ConvOperands& at, const Piece& piece, int64_t maps) {
  const Phase& phase = *piece.phase;
  const ConvWindows& w = phase.windows;
  const ConvWindows::Block block = phase.BlockOf(piece.block);
  float* const copies = at.scratch;
  float* const panels = copies + p.copy_floats;
  float* const sums = panels + p.panel_floats;
  const int64_t depth = phase.depth(), ld = phase.sums_ld;
  const int64_t step = phase.MapStep(ld, p.products->tile_rows);
  int64_t begin = 0;
  do {
    const int64_t end = phase.has_taps ? std::min(begin + w.stretch, w.channels) : 0;
    if (phase.has_taps) w.FillPanels(at.x, piece.slice, {begin, end}, block, copies, panels);
    for (int64_t map = 0, count; map < maps; map += count) {
      count = std::min(maps - map, step);
      if (phase.has_taps) {
        p.products->part({.a = at.weights + map * depth + begin * w.channel_taps(),
                          .lda = depth,
                          .packed_b = panels,
                          .c = sums,
                          .ldc = ld,
                          .n = block.count,
                          .k = (end - begin) * w.channel_taps(),
                          .residual = begin == 0 ? nullptr : sums,
                          .ld_residual = ld},
                         {0, count, 0, p.products->Panels(block.count)});
        if (end < w.channels) continue;
      } else {
        std::fill_n(sums, count * ld, 0.0f);
      }
      p.finish({.y = sums, .ld = ld, .rows = count, .columns = block.count, .bias = at.BiasOf(map)},
               p.activation);
      SpreadBlock(p, phase, piece.slice, block, sums, count, at.out + map * p.map_floats());
    }
    begin = end;
  } while (phase.has_taps && begin < w.channels);
}

// Runs units: a unit is a tile of the maps of a piece of one group of one element of the batch.
void RunConvTranspose(const LaunchArgs& launch) {
  const auto& p = *static_cast<const TransposeParams*>(launch.params);
  const int64_t pieces = p.pieces;
  const int64_t tiles = p.map_tiles(), tile_rows = p.products->tile_rows;
  const int64_t all_pieces = p.Live(launch) * p.groups * pieces;
  const int parts = p.Parts(launch, all_pieces * tiles);
  if (launch.part >= parts) return;
  const ConvOperands all = p.Operands(launch);
  const float* weights = all.weights;
  const int64_t grain = all_pieces < kFewConvBlocks * parts ? 1 : tiles;
  const ItemRange units = RangeOfPart(all_pieces * tiles, grain, launch.part, parts);
  if (!p.split.empty() && units.begin < units.end) {
    SplitIntoPhases(p.split, p.weight, p.groups, weights, all.scratch);
    weights = all.scratch;
  }
  for (int64_t unit = units.begin, next; unit < units.end; unit = next) {
    const int64_t at = unit / tiles;
    next = std::min(units.end, (at + 1) * tiles);
    const Piece piece = p.PieceOf(at % pieces);
    const Phase& phase = *piece.phase;
    const int64_t slab = at / pieces;  // a group of one element of the batch
    const int64_t begin = unit % tiles * tile_rows;
    const int64_t end = std::min(p.group_maps, (next - at * tiles) * tile_rows);
    const int64_t map = slab % p.groups * p.group_maps + begin;
    MakePiece(p,
              {.x = all.x + slab * p.in_floats,
               .weights = weights + phase.weights + map * phase.depth(),
               .bias = all.BiasOf(map),
               .out = all.out + (slab * p.group_maps + begin) * p.map_floats(),
               .scratch = all.scratch + p.weights_floats},
              piece, end - begin);
  }
}

Place PlaceOf(absl::Span<const int64_t> dims, int64_t other) {
  const size_t n = dims.size();
  return {n < 3 ? other : dims[n - 3], n < 2 ? other : dims[n - 2], dims[n - 1]};
}

// Adds phase `of`, whose weights begin at `weights`, and the scratch that it needs.
void AddPhase(const CpuTarget& target, const ConvPhase& of, const Shape& spatial, int64_t channels,
              int64_t weights, TransposeParams& p) {
  const Place out = PlaceOf(of.windows.out, 1);
  if (out.slice * out.row * out.column == 0) return;
  Phase phase;
  phase.first = PlaceOf(of.first, 0);
  phase.out_slices = out.slice;
  phase.out_rows = out.row;
  phase.out_columns = out.column;
  phase.weights = weights;
  phase.has_taps = of.taps() > 0;
  phase.blocks = out.row;
  phase.sums_ld = out.column;
  if (phase.has_taps) {
    phase.windows = ConvWindowsOf(target.isa, of.windows, spatial, channels);
    ConvWindows& w = phase.windows;
    w.SetPanelBlocks();
    phase.blocks = w.blocks();
    phase.sums_ld = w.block;
    p.copy_floats = std::max(p.copy_floats, w.CopyFloats());
    p.panel_floats = std::max(p.panel_floats, static_cast<int64_t>(AlignUp(w.PanelFloats(), 16)));
  }
  const int64_t maps = std::min(p.group_maps, phase.MapStep(phase.sums_ld, p.products->tile_rows));
  p.sums_floats = std::max(p.sums_floats, static_cast<int64_t>(AlignUp(maps * phase.sums_ld, 16)));
  phase.first_piece = p.pieces;
  p.pieces += phase.out_slices * phase.blocks;
  p.phases.push_back(std::move(phase));
}

}  // namespace

std::vector<Candidate> PlanConvTranspose(const CpuTarget& target, const NodeView& node) {
  if (!node.AllOf(DType::kFloat32)) return {};
  if (FusedConvTransposeOp::From(node.attributes()).layout == "last") {
    return PlanConvTransposeLast(target, node);
  }
  const Shape &x = node.shape(0), &weight = node.shape(1);
  absl::StatusOr<ops::TransposedWindows> transposed = ops::TransposedWindowsOf(
      node.node(), x, std::vector<int64_t>(weight.begin() + 2, weight.end()));
  const std::optional<ConvActivation> activation = ConvActivationOf(node.attributes());
  if (!transposed.ok() || !activation.has_value() || NumElements(node.out_shape()) == 0 ||
      NumElements(x) == 0 || NumElements(weight) == 0 || x.size() > ConvWindows::kMaxDims + 2 ||
      NumElements(transposed->windows.strides) > kMaxPhases) {
    return {};
  }
  std::vector<Candidate> small = PlanConvTransposeWeights(target, node, *transposed, *activation);
  if (!small.empty()) return small;
  std::vector<Candidate> few = PlanConvTransposeBands(target, node, *transposed, *activation);
  if (!few.empty()) return few;
  const Shape spatial(x.begin() + 2, x.end());
  const std::vector<ConvPhase> phases = PhasesOf(*transposed);
  TransposeParams p{ConvLaunch(target, node, *activation)};
  p.products = &GemmKernelsFor(target.isa);
  p.groups = ConvTransposeOp::From(node.attributes()).group;
  p.group_maps = weight[1];
  const int64_t channels = x[1] / p.groups;
  int64_t weights = 0;
  for (const ConvPhase& phase : phases) {
    AddPhase(target, phase, spatial, channels, weights, p);
    weights += p.groups * p.group_maps * channels * phase.taps();
  }
  if (p.copy_floats > ConvWindows::kMaxCopy) return {};
  p.in_floats = channels * NumElements(spatial);
  p.out = PlaceOf(transposed->spatial, 1);
  p.stride = PlaceOf(transposed->windows.strides, 1);
  const bool prepared = node.is_parameter(1);
  if (!prepared) {
    p.split = phases;
    p.weight = weight;
    p.weights_floats = static_cast<int64_t>(AlignUp(weights, 16));
  }
  p.scratch_floats = p.weights_floats + p.copy_floats + p.panel_floats + p.sums_floats;
  p.scratch_parts = PartsWithWeights(target, p.weights_floats);
  const double flops = 2.0 * static_cast<double>(p.batch * p.in_floats) *
                       static_cast<double>(NumElements(weight) / channels);
  std::vector<PrepareStep> prepare;
  if (prepared) {
    const ops::Windows& w = transposed->windows;
    prepare.push_back({.input = 1,
                       .op = kSplitPhasesOp,
                       .attributes = {{"strides", w.strides},
                                      {"dilations", w.dilations},
                                      {"pads", w.pad_begin},
                                      {"group", p.groups}},
                       .dtype = DType::kUInt8,
                       .shape = {static_cast<int64_t>(sizeof(float)) * weights}});
  }
  return ConvCandidates(target, node, "conv_transpose", RunConvTranspose, std::move(p), flops,
                        std::move(prepare));
}

absl::StatusOr<Tensor> RunSplitPhases(const PrepareCall& call) {
  const Tensor& weights = call.weight();
  const Shape& shape = weights.shape();
  ops::TransposedWindows t;
  t.windows.strides = call.attributes.Ints("strides");
  t.windows.dilations = call.attributes.Ints("dilations");
  t.windows.pad_begin = call.attributes.Ints("pads");
  const size_t dims = t.windows.strides.size();
  if (weights.dtype() != DType::kFloat32 || shape.size() != dims + 2) {
    return absl::InternalError(absl::StrCat(kSplitPhasesOp, " of ", DTypeName(weights.dtype()), " ",
                                            ShapeToString(shape), " in ", dims, " dims"));
  }
  t.windows.kernel.assign(shape.begin() + 2, shape.end());
  t.spatial.assign(dims, 0);
  const int64_t bytes = weights.num_elements() * static_cast<int64_t>(sizeof(float));
  std::shared_ptr<std::byte> split = call.memory.Allocate(static_cast<size_t>(bytes));
  SplitIntoPhases(PhasesOf(t), shape, ConvTransposeOp::From(call.attributes).group,
                  static_cast<const float*>(weights.data()), reinterpret_cast<float*>(split.get()));
  return Tensor(DType::kUInt8, {bytes}, std::move(split));
}

}  // namespace reprise::cpu
