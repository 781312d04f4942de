// Convolutions as products: the maps' weights times the elements that each window sees.
//
// Of a block of windows the elements are copied into panels, one row a channel and tap, zeros where
// a window hangs over the edge: what the product then reads lies side by side in a core's cache,
// however large the operand is. Every element is summed in the order of channels and taps, so that
// no division of the work changes a bit.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/plan.h"
#include "runtime/ops/windows.h"

namespace reprise::cpu {
namespace {

// Of the copied elements of a block: a half of a small second-level cache.
constexpr int64_t kBlockFloats = 64 << 10;
// The weights pass by once a block, which must not be for a few windows, however deep they are.
constexpr int64_t kMinBlock = 96;
constexpr int64_t kMaxBlock = 768;
// Channels times taps of one copy: deeper sums are added up stretch by stretch.
constexpr int64_t kMaxDepth = 8192;
// With fewer blocks a part than this, the maps of a block are divided too. Each part that shares a
// block copies it, which many blocks do not need.
constexpr int64_t kFewBlocks = 4;
constexpr size_t kMaxDims = 3;
// Copying what windows see pays by being read for many maps; where a group has one channel and so
// few, the plain loops take 0.25 to 0.7 of the time with vectors, and less without.
constexpr int64_t kFewMaps = 2;

struct ConvParams {
  const GemmKernels* kernels = nullptr;
  ops::Windows windows;
  Shape spatial;  // of the operand, without batch and channels
  int64_t batch = 0, batch_rows = 0;
  int64_t groups = 1, group_channels = 0, group_maps = 0;
  int64_t taps = 1, in_plane = 1, out_plane = 1;
  std::vector<int64_t> shifts;  // [taps, dims]: of a tap from where its window begins
  int64_t block = 0;            // windows, whole panels
  int64_t stretch = 0;          // channels copied at a time
  bool has_bias = false;
  int out = 0, workspace = 0;
  int64_t scratch_floats = 0;
  int scratch_parts = 0;

  int64_t depth() const { return group_channels * taps; }
  int64_t blocks() const { return (out_plane + block - 1) / block; }  // of a group
  int64_t map_tiles() const {                                         // of a group
    return (group_maps + kernels->tile_rows - 1) / kernels->tile_rows;
  }
};

struct Channels {
  int64_t begin, end;
};

// Where a tap falls for neighbouring windows along the last dim.
struct TapSpan {
  int64_t offset = 0;          // of the element that window 0 would see, within the plane
  int64_t begin = 0, end = 0;  // the windows whose element is inside the operand
};

// `origin`: by dim, where the first of `count` windows begins, the padding in front left out.
TapSpan PlaceTap(const ConvParams& p, const int64_t* origin, int64_t count, int64_t tap) {
  const size_t dims = p.spatial.size(), last = dims - 1;
  const int64_t* shifts = p.shifts.data() + tap * dims;
  int64_t offset = 0;
  for (size_t d = 0; d < last; ++d) {
    const int64_t position = origin[d] + shifts[d];
    if (position < 0 || position >= p.spatial[d]) return {};
    offset = (offset + position) * p.spatial[d + 1];
  }
  const int64_t position = origin[last] + shifts[last];
  const int64_t stride = p.windows.strides[last], room = p.spatial[last] - 1 - position;
  // Most runs lie inside as a whole.
  if (position >= 0 && room >= (count - 1) * stride) return {offset + position, 0, count};
  const int64_t begin = position >= 0 ? 0 : std::min(count, (-position + stride - 1) / stride);
  const int64_t end = room < 0 ? 0 : std::min(count, room / stride + 1);
  return {offset + position, begin, std::max(begin, end)};
}

// Where window `window` begins along each dim.
void OriginOf(const ConvParams& p, int64_t window, int64_t* origin) {
  for (size_t d = p.spatial.size(); d-- > 0;) {
    origin[d] = window % p.windows.out[d] * p.windows.strides[d];
    window /= p.windows.out[d];
  }
}

// The elements of `channels` that `count` windows from `first` on see, as the panels of a product's
// right side.
void FillPanels(const ConvParams& p, const float* x, Channels channels, int64_t first,
                int64_t count, float* panels) {
  const int64_t width = p.kernels->panel_columns;
  const int64_t depth = (channels.end - channels.begin) * p.taps;
  const int64_t row = p.windows.out.back(), stride = p.windows.strides.back();
  for (int64_t column = 0, length; column < count; column += length) {
    // Neighbours end with a row of windows, or with a panel.
    length = std::min({count - column, width - column % width, row - (first + column) % row});
    float* const to = panels + column / width * width * depth + column % width;
    int64_t origin[kMaxDims];
    OriginOf(p, first + column, origin);
    for (int64_t tap = 0; tap < p.taps; ++tap) {
      const TapSpan span = PlaceTap(p, origin, length, tap);
      float* line = to + tap * width;
      for (int64_t c = channels.begin; c < channels.end; ++c, line += p.taps * width) {
        const float* from = x + c * p.in_plane + span.offset;
        std::fill(line, line + span.begin, 0.0f);
        if (stride == 1) {
          std::memcpy(line + span.begin, from + span.begin,
                      static_cast<size_t>(span.end - span.begin) * sizeof(float));
        } else {
          for (int64_t i = span.begin; i < span.end; ++i) line[i] = from[i * stride];
        }
        std::fill(line + span.end, line + length, 0.0f);
      }
    }
  }
  // Nobody reads the results of what lies behind the last window, but it must be numbers.
  const int64_t tail = count % width;
  if (tail == 0) return;
  float* const to = panels + count / width * width * depth;
  for (int64_t i = 0; i < depth; ++i) std::fill(to + i * width + tail, to + (i + 1) * width, 0.0f);
}

// The first `maps` maps of `count` windows from `first` on. `x` is the operand's group; `weights`,
// `bias` (null: none) and `out` begin with the first map.
void ConvolveBlock(const ConvParams& p, const float* x, const float* weights, const float* bias,
                   int64_t maps, int64_t first, int64_t count, float* panels, float* out) {
  float* const c = out + first;
  for (int64_t begin = 0; begin < p.group_channels; begin += p.stretch) {
    const Channels channels{begin, std::min(begin + p.stretch, p.group_channels)};
    FillPanels(p, x, channels, first, count, panels);
    p.kernels->part({.a = weights + begin * p.taps,
                     .lda = p.depth(),
                     .packed_b = panels,
                     .c = c,
                     .ldc = p.out_plane,
                     .n = count,
                     .k = (channels.end - begin) * p.taps,
                     .residual = begin == 0 ? nullptr : c,
                     .ld_residual = p.out_plane},
                    {0, maps, 0, p.kernels->Panels(count)});
  }
  if (bias == nullptr) return;
  for (int64_t i = 0; i < maps; ++i) {
    float* const line = c + i * p.out_plane;
    for (int64_t j = 0; j < count; ++j) line[j] += bias[i];
  }
}

// A unit is a tile of the maps of a block of windows, of one group of one element of the batch.
void RunConv(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ConvParams*>(launch.params);
  const int64_t blocks = p.blocks(), tiles = p.map_tiles(), tile_rows = p.kernels->tile_rows;
  const int64_t all_blocks = LiveOf(p.batch, p.batch_rows, *launch.frame) * p.groups * blocks;
  const int parts = static_cast<int>(
      std::min<int64_t>(all_blocks * tiles, PartsWithScratch(launch, p.scratch_parts)));
  if (launch.part >= parts) return;
  const auto* x = static_cast<const float*>(launch.operands[0]);
  const auto* weights = static_cast<const float*>(launch.operands[1]);
  const auto* bias = p.has_bias ? static_cast<const float*>(launch.operands[2]) : nullptr;
  auto* out = static_cast<float*>(launch.operands[p.out]);
  float* const panels =
      static_cast<float*>(launch.operands[p.workspace]) + launch.part * p.scratch_floats;
  const int64_t grain = all_blocks < kFewBlocks * parts ? 1 : tiles;
  const ItemRange units = RangeOfPart(all_blocks * tiles, grain, launch.part, parts);
  // The tiles of one block are one product.
  for (int64_t unit = units.begin, next; unit < units.end; unit = next) {
    const int64_t block = unit / tiles;
    next = std::min(units.end, (block + 1) * tiles);
    const int64_t slab = block / blocks;  // a group of one element of the batch
    const int64_t first = block % blocks * p.block;
    const int64_t begin = unit % tiles * tile_rows;
    const int64_t end = std::min(p.group_maps, (next - block * tiles) * tile_rows);
    const int64_t map = slab % p.groups * p.group_maps + begin;
    ConvolveBlock(p, x + slab * p.group_channels * p.in_plane, weights + map * p.depth(),
                  bias == nullptr ? nullptr : bias + map, end - begin, first,
                  std::min(p.block, p.out_plane - first), panels,
                  out + (slab * p.group_maps + begin) * p.out_plane);
  }
}

// Blocks of about one size, whole panels.
int64_t BlockOf(const ConvParams& p) {
  const int64_t all = p.kernels->Panels(p.out_plane);
  const int64_t most =
      p.kernels->Panels(std::clamp(kBlockFloats / (p.stretch * p.taps), kMinBlock, kMaxBlock));
  const int64_t blocks = (all + most - 1) / most;
  return (all + blocks - 1) / blocks * p.kernels->panel_columns;
}

}  // namespace

std::vector<Candidate> PlanConv(const CpuTarget& target, const NodeView& node) {
  if (!node.AllOf(DType::kFloat32)) return {};
  const Shape &x = node.shape(0), &weight = node.shape(1);
  absl::StatusOr<ops::Windows> windows =
      ops::WindowsOf(node.node(), x, std::vector<int64_t>(weight.begin() + 2, weight.end()));
  if (!windows.ok() || NumElements(node.out_shape()) == 0 || NumElements(x) == 0) return {};
  ConvParams p;
  p.kernels = &target.gemm;
  p.windows = *std::move(windows);
  p.spatial.assign(x.begin() + 2, x.end());
  p.batch = x[0];
  // Only whole elements of the batch can be left out.
  p.batch_rows = node.batch_rows() > 0 && p.batch % node.batch_rows() == 0 ? node.batch_rows() : 0;
  p.groups = node.attributes().Int("group", 1);
  p.group_channels = weight[1];
  p.group_maps = weight[0] / p.groups;
  p.taps = NumElements(p.windows.kernel);
  p.in_plane = NumElements(p.spatial);
  p.out_plane = NumElements(p.windows.out);
  p.has_bias = node.has_input(2);
  if (p.depth() == 0 || p.group_maps == 0 || p.spatial.size() > kMaxDims) return {};
  if (p.group_channels == 1 && p.group_maps <= kFewMaps) return {};
  for (int64_t tap = 0; tap < p.taps; ++tap) {
    const size_t dims = p.spatial.size();
    p.shifts.resize(p.shifts.size() + dims);
    int64_t rest = tap;
    for (size_t d = dims; d-- > 0;) {
      p.shifts[tap * dims + d] =
          rest % p.windows.kernel[d] * p.windows.dilations[d] - p.windows.pad_begin[d];
      rest /= p.windows.kernel[d];
    }
  }
  p.stretch = std::clamp<int64_t>(kMaxDepth / p.taps, 1, p.group_channels);
  p.block = BlockOf(p);
  p.out = static_cast<int>(node.num_inputs());
  p.workspace = static_cast<int>(node.num_inputs() + node.num_outputs());
  p.scratch_floats = static_cast<int64_t>(AlignUp(p.block * p.stretch * p.taps, 16));
  p.scratch_parts = target.scratch_parts;
  const double flops =
      2.0 * static_cast<double>(NumElements(node.out_shape())) * static_cast<double>(p.depth());
  const int64_t units = p.batch * p.groups * p.blocks() * p.map_tiles();
  const size_t workspace =
      sizeof(float) * p.scratch_floats * std::min<int64_t>(units, p.scratch_parts);
  const bool takes_live_rows = p.batch_rows > 0;
  Candidate candidate = MakeCandidate(target, node, "conv", RunConv, std::move(p), flops);
  candidate.option.workspace_bytes = workspace;
  candidate.option.takes_live_rows = takes_live_rows;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
