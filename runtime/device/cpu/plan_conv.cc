// Convolutions as products: the maps' weights times the elements that each window sees.
//
// Of a block of windows the elements are copied into panels (conv_windows.h): what the product then
// reads lies side by side in a core's cache, however large the operand is. Every element is summed
// in the order of channels and taps, so that no division of the work changes a bit.
#include "runtime/device/cpu/plan_conv.h"

#include <algorithm>

#include "runtime/ops/windows.h"

namespace reprise::cpu {
namespace {

// Of the copied elements of a block: a half of a small second-level cache.
constexpr int64_t kBlockFloats = 64 << 10;
// The weights pass by once a block, which must not be for a few windows, however deep they are.
constexpr int64_t kMinBlock = 96;
constexpr int64_t kMaxBlock = 768;
// With fewer blocks a part than this, the maps of a block are divided too. Each part that shares a
// block copies it, which many blocks do not need.
constexpr int64_t kFewBlocks = 4;
// Of results that are finished at a time.
constexpr int64_t kFinishFloats = 8 << 10;
// Of the rows that a block sees, in floats: dilations that reach farther are for the plain loops.
constexpr int64_t kMaxCopy = 16 << 20;
// Copying what windows see pays by being read for many maps. Where a group has one channel and so
// few, each map is computed by itself.
constexpr int64_t kFewMaps = 2;

struct ConvParams {
  ConvWindows windows;
  ConvFinish finish = nullptr;
  ConvActivation activation;
  int64_t batch = 0, batch_rows = 0;
  int64_t groups = 1, group_maps = 0;
  bool has_bias = false;
  int residual = -1;  // among the operands
  int out = 0, workspace = 0;
  int64_t scratch_floats = 0;
  int scratch_parts = 0;

  int64_t map_tiles() const {  // of a group
    return (group_maps + windows.products->tile_rows - 1) / windows.products->tile_rows;
  }
  int64_t map_floats() const { return windows.out_slices * windows.out_plane(); }
};

// What a convolution reads and writes; all but `x` begin with the first map.
struct Operands {
  const float* x;  // of a group of one element of the batch
  const float* weights;
  const float* bias;      // null: none
  const float* residual;  // null: none
  float* out;
};

// The first `maps` maps of a block of slice `slice`.
void ConvolveBlock(const ConvParams& p, const Operands& at, int64_t slice, int64_t maps,
                   const ConvWindows::Block& block, float* scratch) {
  const ConvWindows& w = p.windows;
  float* const panels = scratch + w.CopyFloats();
  const int64_t ld = p.map_floats(), tile_rows = w.products->tile_rows;
  const int64_t first = slice * w.out_plane() + block.first;
  float* const c = at.out + first;
  for (int64_t begin = 0, end; begin < w.channels; begin = end) {
    end = std::min(begin + w.stretch, w.channels);
    w.FillPanels(at.x, slice, {begin, end}, block, scratch, panels);
    // The maps whose results stay in the first-level cache until they are finished.
    const int64_t step = std::max<int64_t>(1, kFinishFloats / block.count / tile_rows) * tile_rows;
    for (int64_t map = 0, next; map < maps; map = next) {
      next = std::min(maps, map + step);
      w.products->part({.a = at.weights + begin * w.channel_taps(),
                        .lda = w.depth(),
                        .packed_b = panels,
                        .c = c,
                        .ldc = ld,
                        .n = block.count,
                        .k = (end - begin) * w.channel_taps(),
                        .residual = begin == 0 ? nullptr : c,
                        .ld_residual = ld},
                       {map, next, 0, w.products->Panels(block.count)});
      if (end < w.channels) continue;
      p.finish({.y = c + map * ld,
                .ld = ld,
                .rows = next - map,
                .columns = block.count,
                .bias = at.bias == nullptr ? nullptr : at.bias + map,
                .residual = at.residual == nullptr ? nullptr : at.residual + map * ld + first,
                .ld_residual = ld},
               p.activation);
    }
  }
}

// A unit is a tile of the maps of a block of windows, of one slice of one group of one element of
// the batch.
void RunConv(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ConvParams*>(launch.params);
  const ConvWindows& w = p.windows;
  const int64_t blocks = w.blocks(), tiles = p.map_tiles(), tile_rows = w.products->tile_rows;
  const int64_t all_blocks =
      LiveOf(p.batch, p.batch_rows, *launch.frame) * p.groups * w.out_slices * blocks;
  const int parts = static_cast<int>(
      std::min<int64_t>(all_blocks * tiles, PartsWithScratch(launch, p.scratch_parts)));
  if (launch.part >= parts) return;
  const auto* x = static_cast<const float*>(launch.operands[0]);
  const auto* weights = static_cast<const float*>(launch.operands[1]);
  const auto* bias = p.has_bias ? static_cast<const float*>(launch.operands[2]) : nullptr;
  const auto* residual =
      p.residual < 0 ? nullptr : static_cast<const float*>(launch.operands[p.residual]);
  auto* out = static_cast<float*>(launch.operands[p.out]);
  float* const scratch =
      static_cast<float*>(launch.operands[p.workspace]) + launch.part * p.scratch_floats;
  const int64_t grain = all_blocks < kFewBlocks * parts ? 1 : tiles;
  const ItemRange units = RangeOfPart(all_blocks * tiles, grain, launch.part, parts);
  // The tiles of one block are one product.
  for (int64_t unit = units.begin, next; unit < units.end; unit = next) {
    const int64_t block = unit / tiles;
    next = std::min(units.end, (block + 1) * tiles);
    const int64_t slice = block / blocks % w.out_slices;
    const int64_t slab = block / blocks / w.out_slices;  // a group of one element of the batch
    const int64_t begin = unit % tiles * tile_rows;
    const int64_t end = std::min(p.group_maps, (next - block * tiles) * tile_rows);
    const int64_t map = slab % p.groups * p.group_maps + begin;
    const int64_t result = (slab * p.group_maps + begin) * p.map_floats();
    ConvolveBlock(p,
                  {.x = x + slab * w.channels * w.in_slices * w.in_plane(),
                   .weights = weights + map * w.depth(),
                   .bias = bias == nullptr ? nullptr : bias + map,
                   .residual = residual == nullptr ? nullptr : residual + result,
                   .out = out + result},
                  slice, end - begin, w.BlockOf(block % blocks), scratch);
  }
}

}  // namespace

std::vector<Candidate> PlanConv(const CpuTarget& target, const NodeView& node) {
  if (!node.AllOf(DType::kFloat32)) return {};
  const Shape &x = node.shape(0), &weight = node.shape(1);
  absl::StatusOr<ops::Windows> windows =
      ops::WindowsOf(node.node(), x, std::vector<int64_t>(weight.begin() + 2, weight.end()));
  const std::optional<ConvActivation> activation = ConvActivationOf(node.attributes());
  if (!windows.ok() || !activation.has_value() || NumElements(node.out_shape()) == 0 ||
      NumElements(x) == 0 || NumElements(weight) == 0 || x.size() > ConvWindows::kMaxDims + 2) {
    return {};
  }
  ConvParams p;
  p.groups = node.attributes().Int("group", 1);
  p.group_maps = weight[0] / p.groups;
  if (weight[1] == 1 && p.group_maps <= kFewMaps) {
    std::vector<Candidate> strips = PlanDepthwise(target, node, *windows);
    if (!strips.empty()) return strips;
  }
  std::vector<Candidate> tiles = PlanConvWinograd(target, node, *windows, *activation);
  if (!tiles.empty()) return tiles;
  p.windows = ConvWindowsOf(target.isa, *windows, Shape(x.begin() + 2, x.end()), weight[1]);
  ConvWindows& w = p.windows;
  std::vector<Candidate> few = PlanConvWeights(target, node, w, *activation);
  if (!few.empty()) return few;
  const int64_t block =
      std::clamp(kBlockFloats / (w.stretch * w.channel_taps()), kMinBlock, kMaxBlock);
  w.SetBlocks(w.products->Panels(block) * w.products->panel_columns, w.products->panel_columns);
  if (w.CopyFloats() > kMaxCopy) return {};
  p.finish = ConvFinishFor(target.isa);
  p.activation = *activation;
  p.batch = x[0];
  // Only whole elements of the batch can be left out.
  p.batch_rows = node.batch_rows() > 0 && p.batch % node.batch_rows() == 0 ? node.batch_rows() : 0;
  p.has_bias = node.has_input(2);
  if (node.has_input(3)) p.residual = 3;
  p.out = static_cast<int>(node.num_inputs());
  p.workspace = static_cast<int>(node.num_inputs() + node.num_outputs());
  p.scratch_floats = w.CopyFloats() + static_cast<int64_t>(AlignUp(w.PanelFloats(), 16));
  p.scratch_parts = target.scratch_parts;
  const double flops =
      2.0 * static_cast<double>(NumElements(node.out_shape())) * static_cast<double>(w.depth());
  const int64_t units = p.batch * p.groups * w.out_slices * w.blocks() * p.map_tiles();
  const size_t workspace =
      sizeof(float) * p.scratch_floats * std::min<int64_t>(units, p.scratch_parts);
  const bool takes_live_rows = p.batch_rows > 0;
  Candidate candidate = MakeCandidate(target, node, "conv", RunConv, std::move(p), flops);
  candidate.option.workspace_bytes = workspace;
  candidate.option.takes_live_rows = takes_live_rows;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
