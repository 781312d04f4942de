// Convolutions as GEMMs over im2col (conv_product.h): the weights of the maps times the elements
// that each window sees.
//
// The elements under a block of windows are copied into panels (im2col_windows.h), so that the
// operands of the product lie side by side in a core's cache, however large the operand is. Where a
// window is one element, the product reads the operand in place. Every element is summed in the
// order of channels and taps, so that no division of the work changes a bit.
#include "runtime/device/cpu/conv/plan_conv.h"

#include <algorithm>

#include "runtime/device/cpu/conv/conv_plans.h"
#include "runtime/device/cpu/gemm/conv_product.h"
#include "runtime/ops/windows/conv_op.h"
#include "runtime/ops/windows/windows.h"

namespace reprise::cpu {
namespace {

// Copying the elements of windows pays if many maps read them. Where a group has one channel and
// this few maps, each map is computed by itself.
constexpr int64_t kFewMaps = 2;

struct ConvParams : ConvLaunch {
  ConvWindows windows;
  const ConvProductKernels* kernels = nullptr;
  int64_t groups = 1, group_maps = 0;
  bool packed = false;  // the weights

  int64_t map_tiles() const { return kernels->Tiles(group_maps); }  // map tiles of one group
  int64_t map_floats() const { return windows.out_slices * windows.out_plane(); }
  // Returns the pieces of a part's scratch, each aligned to 64 bytes.
  int64_t PanelFloats() const {
    const int64_t one = windows.products->PackedFloats(windows.stretch * windows.channel_taps(), 1);
    return static_cast<int64_t>(AlignUp(windows.plain ? one : windows.PanelFloats(), 16));
  }
  int64_t WeightFloats() const {
    return packed ? 0 : static_cast<int64_t>(AlignUp(group_maps * windows.depth(), 16));
  }
};

// Computes tiles `tiles` of the maps of a block of slice `slice`; `at` belongs to one group of one
// element of the batch.
void ConvolveBlock(const ConvParams& p, const ConvOperands& at, int64_t slice,
                   const ItemRange& tiles, const ConvWindows::Block& block) {
  const ConvWindows& w = p.windows;
  float* const panels = at.scratch + w.CopyFloats();
  const int64_t ld = p.map_floats(), width = w.products->panel_columns;
  const int64_t first = slice * w.out_plane() + block.first;
  const int64_t map = p.kernels->MapOf(tiles.begin, p.group_maps);
  const int64_t maps = p.kernels->MapOf(tiles.end, p.group_maps) - map;
  const bool finished = p.activation.none() || p.activation.clip();
  for (int64_t begin = 0, end; begin < w.channels; begin = end) {
    end = std::min(begin + w.stretch, w.channels);
    if (!w.plain) w.FillPanels(at.x, slice, {begin, end}, block, at.scratch, panels);
    ConvProduct product = {.weights = at.weights,
                           .maps = p.group_maps,
                           .depth = w.depth(),
                           .begin_k = begin * w.channel_taps(),
                           .end_k = end * w.channel_taps(),
                           .first = begin == 0,
                           .last = end == w.channels,
                           .ld_in_place = w.in_plane(),
                           .ld = ld,
                           .bias = at.bias,
                           .ld_residual = ld,
                           .bounded = p.activation.clip(),
                           .low = p.activation.low,
                           .high = p.activation.high};
    for (int64_t column = 0; column < block.count; column += product.columns) {
      const int64_t window = first + column;
      product.panel = panels;
      if (w.plain) {
        product.in_place = at.x + begin * w.in_plane() + window;
      } else {
        product.panel += column * (product.end_k - product.begin_k);
      }
      product.y = at.out + window;
      const int64_t rest = block.count - column;
      product.columns = w.plain ? p.kernels->NextColumns(rest) : std::min(width, rest);
      product.residual = at.ResidualAt(window);
      p.kernels->multiply(product, tiles.begin, tiles.end);
      if (finished || end < w.channels) continue;
      p.finish({.y = product.y + map * ld, .ld = ld, .rows = maps, .columns = product.columns},
               p.activation);
    }
  }
}

// Runs units: a unit is a tile of the maps of a block of windows, of one slice of one group of one
// element of the batch.
void RunConv(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ConvParams*>(launch.params);
  const ConvWindows& w = p.windows;
  const int64_t blocks = w.blocks(), tiles = p.map_tiles();
  const int64_t all_blocks = p.Live(launch) * p.groups * w.out_slices * blocks;
  const int parts = p.Parts(launch, all_blocks * tiles);
  if (launch.part >= parts) return;
  const ConvOperands all = p.Operands(launch);
  const int64_t grain = all_blocks < kFewConvBlocks * parts ? 1 : tiles;
  const ItemRange units = RangeOfPart(all_blocks * tiles, grain, launch.part, parts);
  float* const own_weights = all.scratch + w.CopyFloats() + p.PanelFloats();
  const float* packed_group = nullptr;  // whose weights are in own_weights
  // The tiles of one block are one product.
  for (int64_t unit = units.begin, next; unit < units.end; unit = next) {
    const int64_t block = unit / tiles;
    next = std::min(units.end, (block + 1) * tiles);
    const int64_t slice = block / blocks % w.out_slices;
    const int64_t slab = block / blocks / w.out_slices;  // a group of one element of the batch
    const int64_t map = slab % p.groups * p.group_maps;
    const int64_t result = slab * p.group_maps * p.map_floats();
    const float* of_group = all.weights + map * w.depth();
    if (!p.packed && of_group != packed_group) {
      p.kernels->pack(of_group, p.group_maps, w.depth(), own_weights);
      packed_group = of_group;
    }
    ConvolveBlock(p,
                  {.x = all.x + slab * w.channels * w.in_slices * w.in_plane(),
                   .weights = p.packed ? of_group : own_weights,
                   .bias = all.BiasOf(map),
                   .residual = all.ResidualAt(result),
                   .out = all.out + result,
                   .scratch = all.scratch},
                  slice, {unit - block * tiles, next - block * tiles}, w.BlockOf(block % blocks));
  }
}

}  // namespace

std::vector<Candidate> PlanConv(const CpuTarget& target, const NodeView& node) {
  if (!node.AllOf(DType::kFloat32)) return {};
  const std::string layout = FusedConvOp::From(node.attributes()).layout;
  if (layout == "last") return PlanConvLast(target, node);
  if (layout == "to_last") return PlanConvToLast(target, node);
  const Shape &x = node.shape(0), &weight = node.shape(1);
  absl::StatusOr<ops::Windows> windows =
      ops::WindowsOf(node.node(), x, std::vector<int64_t>(weight.begin() + 2, weight.end()));
  const std::optional<ConvActivation> activation = ConvActivationOf(node.attributes());
  if (!windows.ok() || !activation.has_value() || NumElements(node.out_shape()) == 0 ||
      NumElements(x) == 0 || NumElements(weight) == 0 || x.size() > ConvWindows::kMaxDims + 2) {
    return {};
  }
  Shape spatial(x.begin() + 2, x.end());
  LayColumnsDown(*windows, spatial);
  ConvParams p{ConvLaunch(target, node, *activation)};
  p.groups = ConvOp::From(node.attributes()).group;
  p.group_maps = weight[0] / p.groups;
  if (weight[1] == 1 && p.group_maps <= kFewMaps) {
    std::vector<Candidate> channels = PlanDepthwiseChannels(target, node, *windows, spatial);
    if (!channels.empty()) return channels;
    std::vector<Candidate> strips = PlanDepthwise(target, node, *windows, spatial);
    if (!strips.empty()) return strips;
  }
  std::vector<Candidate> tiles = PlanConvWinograd(target, node, *windows, *activation);
  if (!tiles.empty()) return tiles;
  p.windows = ConvWindowsOf(target.isa, *windows, spatial, weight[1]);
  ConvWindows& w = p.windows;
  std::vector<Candidate> few = PlanConvWeights(target, node, w, *activation);
  if (!few.empty()) return few;
  std::vector<Candidate> lines = PlanConvLines(target, node, *windows, spatial, *activation);
  if (!lines.empty()) return lines;
  w.SetPanelStretch();
  w.SetPanelBlocks();
  if (w.CopyFloats() > ConvWindows::kMaxCopy) return {};
  p.kernels = &ConvProductKernelsFor(target.isa);
  p.packed = node.is_parameter(1);
  p.scratch_floats = w.CopyFloats() + p.PanelFloats() + p.WeightFloats();
  const int64_t units = p.batch * p.groups * w.out_slices * w.blocks() * p.map_tiles();
  p.scratch_parts =
      static_cast<int>(std::min<int64_t>(units, PartsWithWeights(target, p.WeightFloats())));
  const double flops =
      2.0 * static_cast<double>(NumElements(node.out_shape())) * static_cast<double>(w.depth());
  std::vector<PrepareStep> prepare;
  if (p.packed) {
    prepare.push_back(PackMaps(NumElements(weight), p.groups, p.kernels->tile_maps));
  }
  return ConvCandidates(target, node, "conv", RunConv, std::move(p), flops, std::move(prepare));
}

}  // namespace reprise::cpu
