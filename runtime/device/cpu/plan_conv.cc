// Convolutions as products (conv_product.h): the maps' weights times the elements that each window
// sees.
//
// Of a block of windows the elements are copied into panels (conv_windows.h): what the product then
// reads lies side by side in a core's cache, however large the operand is. Where a window is an
// element the product reads them where they are. Every element is summed in the order of channels
// and taps, so that no division of the work changes a bit.
#include "runtime/device/cpu/plan_conv.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/conv_product.h"
#include "runtime/device/cpu/weight_memory.h"
#include "runtime/ops/windows.h"

namespace reprise::cpu {
namespace {

// Copying what windows see pays by being read for many maps. Where a group has one channel and so
// few, each map is computed by itself.
constexpr int64_t kFewMaps = 2;

struct ConvParams {
  ConvWindows windows;
  const ConvProductKernels* kernels = nullptr;
  ConvFinish finish = nullptr;
  ConvActivation activation;
  int64_t batch = 0, batch_rows = 0;
  int64_t groups = 1, group_maps = 0;
  bool has_bias = false;
  int residual = -1;    // among the operands
  bool packed = false;  // the weights
  int out = 0, workspace = 0;
  int64_t scratch_floats = 0;
  int scratch_parts = 0;

  int64_t map_tiles() const { return kernels->Tiles(group_maps); }  // of a group
  int64_t map_floats() const { return windows.out_slices * windows.out_plane(); }
  // The pieces of a part's scratch, each aligned to 64 bytes.
  int64_t PanelFloats() const {
    const int64_t one = windows.products->PackedFloats(windows.stretch * windows.channel_taps(), 1);
    return static_cast<int64_t>(AlignUp(windows.plain ? one : windows.PanelFloats(), 16));
  }
  int64_t WeightFloats() const {
    return packed ? 0 : static_cast<int64_t>(AlignUp(group_maps * windows.depth(), 16));
  }
};

// What a convolution reads and writes, of one group of one element of the batch.
struct Operands {
  const float* x;
  const float* weights;   // packed
  const float* bias;      // null: none
  const float* residual;  // null: none
  float* out;
};

// Tiles `tiles` of the maps of a block of slice `slice`.
void ConvolveBlock(const ConvParams& p, const Operands& at, int64_t slice, const ItemRange& tiles,
                   const ConvWindows::Block& block, float* scratch) {
  const ConvWindows& w = p.windows;
  float* const panels = scratch + w.CopyFloats();
  const int64_t ld = p.map_floats(), width = w.products->panel_columns;
  const int64_t first = slice * w.out_plane() + block.first;
  const int64_t map = p.kernels->MapOf(tiles.begin, p.group_maps);
  const int64_t maps = p.kernels->MapOf(tiles.end, p.group_maps) - map;
  const bool finished = p.activation.none() || p.activation.clip();
  for (int64_t begin = 0, end; begin < w.channels; begin = end) {
    end = std::min(begin + w.stretch, w.channels);
    if (!w.plain) w.FillPanels(at.x, slice, {begin, end}, block, scratch, panels);
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
      product.residual = at.residual == nullptr ? nullptr : at.residual + window;
      p.kernels->multiply(product, tiles.begin, tiles.end);
      if (finished || end < w.channels) continue;
      p.finish({.y = product.y + map * ld, .ld = ld, .rows = maps, .columns = product.columns},
               p.activation);
    }
  }
}

// A unit is a tile of the maps of a block of windows, of one slice of one group of one element of
// the batch.
void RunConv(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ConvParams*>(launch.params);
  const ConvWindows& w = p.windows;
  const int64_t blocks = w.blocks(), tiles = p.map_tiles();
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
  const int64_t grain = all_blocks < kFewConvBlocks * parts ? 1 : tiles;
  const ItemRange units = RangeOfPart(all_blocks * tiles, grain, launch.part, parts);
  float* const own_weights = scratch + w.CopyFloats() + p.PanelFloats();
  const float* packed_group = nullptr;  // whose weights are in own_weights
  // The tiles of one block are one product.
  for (int64_t unit = units.begin, next; unit < units.end; unit = next) {
    const int64_t block = unit / tiles;
    next = std::min(units.end, (block + 1) * tiles);
    const int64_t slice = block / blocks % w.out_slices;
    const int64_t slab = block / blocks / w.out_slices;  // a group of one element of the batch
    const int64_t map = slab % p.groups * p.group_maps;
    const int64_t result = slab * p.group_maps * p.map_floats();
    const float* of_group = weights + map * w.depth();
    if (!p.packed && of_group != packed_group) {
      p.kernels->pack(of_group, p.group_maps, w.depth(), own_weights);
      packed_group = of_group;
    }
    ConvolveBlock(p,
                  {.x = x + slab * w.channels * w.in_slices * w.in_plane(),
                   .weights = p.packed ? of_group : own_weights,
                   .bias = bias == nullptr ? nullptr : bias + map,
                   .residual = residual == nullptr ? nullptr : residual + result,
                   .out = out + result},
                  slice, {unit - block * tiles, next - block * tiles}, w.BlockOf(block % blocks),
                  scratch);
  }
}

}  // namespace

PrepareStep MapsLast(const Shape& weight, size_t dims) {
  std::vector<int64_t> order;
  Shape turned;
  for (size_t i = 0; i < weight.size(); ++i) {
    order.push_back(static_cast<int64_t>((i + dims) % weight.size()));
    turned.push_back(weight[order.back()]);
  }
  return {.input = 1,
          .op = "Transpose",
          .attributes = {{"perm", std::move(order)}},
          .dtype = DType::kFloat32,
          .shape = std::move(turned)};
}

std::vector<float> TapsFirst(const float* weights, int64_t maps, int64_t depth, int64_t taps) {
  std::vector<float> by_tap(static_cast<size_t>(maps * depth));
  const int64_t channels = depth / taps;
  for (int64_t map = 0; map < maps; ++map, weights += depth) {
    float* const to = by_tap.data() + map * depth;
    for (int64_t k = 0; k < depth; ++k) to[k % taps * channels + k / taps] = weights[k];
  }
  return by_tap;
}

std::vector<Candidate> PlanConv(const CpuTarget& target, const NodeView& node) {
  if (!node.AllOf(DType::kFloat32)) return {};
  const std::string layout = node.attributes().String("layout", "first");
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
  ConvParams p;
  p.groups = node.attributes().Int("group", 1);
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
  p.finish = ConvFinishFor(target.isa);
  p.activation = *activation;
  p.batch = x[0];
  // Only whole elements of the batch can be left out.
  p.batch_rows = WholeBatchRows(node, p.batch);
  p.has_bias = node.has_input(2);
  if (node.has_input(3)) p.residual = 3;
  p.out = static_cast<int>(node.num_inputs());
  p.workspace = static_cast<int>(node.num_inputs() + node.num_outputs());
  p.packed = node.is_parameter(1);
  p.scratch_floats = w.CopyFloats() + p.PanelFloats() + p.WeightFloats();
  p.scratch_parts = PartsWithWeights(target, p.WeightFloats());
  const double flops =
      2.0 * static_cast<double>(NumElements(node.out_shape())) * static_cast<double>(w.depth());
  const int64_t units = p.batch * p.groups * w.out_slices * w.blocks() * p.map_tiles();
  const size_t workspace =
      sizeof(float) * p.scratch_floats * std::min<int64_t>(units, p.scratch_parts);
  const bool takes_live_rows = p.batch_rows > 0, packed = p.packed;
  const int64_t groups = p.groups, tile = p.kernels->tile_maps;
  Candidate candidate = MakeCandidate(target, node, "conv", RunConv, std::move(p), flops);
  candidate.option.workspace_bytes = workspace;
  candidate.option.takes_live_rows = takes_live_rows;
  if (packed) candidate.option.prepare.push_back(PackMaps(NumElements(weight), groups, tile));
  return {std::move(candidate)};
}

absl::StatusOr<Tensor> RunPackMaps(const CpuTarget& target, const Attributes& attributes,
                                   const Tensor& weights, WeightMemory& memory) {
  const int64_t groups = attributes.Int("groups", 0), tile = attributes.Int("tile", 0);
  const ConvProductKernels& panels = ConvProductKernelsFor(target.isa);
  const ConvProductKernels& kernels =
      tile == panels.tile_maps ? panels : ConvTapKernelsFor(target.isa);
  const int64_t taps = attributes.Int("taps", 1);
  const Shape& shape = weights.shape();
  if (weights.dtype() != DType::kFloat32 || shape.empty() || groups < 1 || shape[0] % groups != 0 ||
      tile != kernels.tile_maps) {
    return absl::InternalError(absl::StrCat(
        kPackMapsOp, " of ", DTypeName(weights.dtype()), " ", ShapeToString(shape), " in ", groups,
        " groups, into tiles of ", tile, " maps on a device of ", kernels.tile_maps));
  }
  const int64_t maps = shape[0] / groups;
  const int64_t floats = NumElements(shape), of_group = floats / groups;
  const int64_t bytes = floats * static_cast<int64_t>(sizeof(float));
  std::shared_ptr<std::byte> packed = memory.Allocate(static_cast<size_t>(bytes));
  auto* to = reinterpret_cast<float*>(packed.get());
  const float* from = weights.span<float>().data();
  std::vector<float> by_tap;
  if (taps > 1) {
    by_tap = TapsFirst(from, shape[0], floats / shape[0], taps);
    from = by_tap.data();
  }
  for (int64_t group = 0; group < groups; ++group) {
    kernels.pack(from + group * of_group, maps, of_group / maps, to + group * of_group);
  }
  return Tensor(DType::kUInt8, {bytes}, std::move(packed));
}

}  // namespace reprise::cpu
