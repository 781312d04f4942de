// Convolutions as products: the maps' weights times the elements that each window sees.
//
// Of a block of windows the elements are copied into panels, one row a channel and tap, zeros where
// a window hangs over the edge: what the product then reads fits a core's cache, however large the
// operand is. Every element is summed in the order of channels and taps, so that no division of the
// work changes a bit.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/plan.h"
#include "runtime/ops/windows.h"

namespace reprise::cpu {
namespace {

// Of the copied elements of a block: a half of a small second-level cache.
constexpr int64_t kBlockFloats = 64 << 10;
constexpr int64_t kMaxBlockPanels = 16;
constexpr size_t kMaxDims = 3;

struct ConvParams {
  const GemmKernels* kernels = nullptr;
  ops::Windows windows;
  Shape spatial;  // of the operand, without batch and channels
  int64_t batch = 0, batch_rows = 0;
  int64_t groups = 1, group_channels = 0, group_maps = 0;
  int64_t taps = 1, in_plane = 1, out_plane = 1;
  std::vector<int64_t> shifts;  // [taps, dims]: of a tap from where its window begins
  int64_t block = 0;            // windows of a unit, whole panels
  bool has_bias = false;
  int out = 0, workspace = 0;
  int64_t scratch_floats = 0;
  int scratch_parts = 0;

  int64_t depth() const { return group_channels * taps; }
};

// Where a tap falls for a run of windows that lie side by side along the last dim.
struct RunOfTap {
  int64_t offset = 0;  // of the element that window 0 of the run would see, within the plane
  int64_t begin = 0, end = 0;  // the windows of the run whose element is inside the operand
};

// `origin`: by dim, where the first window of the run begins, the padding in front left out.
RunOfTap PlaceTap(const ConvParams& p, const int64_t* origin, int64_t count, int64_t tap) {
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

// The elements that `count` windows from `first` on see, as the panels of a product's right side.
void FillPanels(const ConvParams& p, const float* x, int64_t first, int64_t count, float* panels) {
  const int64_t width = p.kernels->panel_columns, depth = p.depth();
  const int64_t row = p.windows.out.back(), stride = p.windows.strides.back();
  for (int64_t column = 0; column < count;) {
    // A run ends with a row of windows, or with a panel.
    const int64_t run =
        std::min({count - column, width - column % width, row - (first + column) % row});
    float* const to = panels + column / width * width * depth + column % width;
    int64_t origin[kMaxDims];
    OriginOf(p, first + column, origin);
    for (int64_t tap = 0; tap < p.taps; ++tap) {
      const RunOfTap place = PlaceTap(p, origin, run, tap);
      for (int64_t channel = 0; channel < p.group_channels; ++channel) {
        float* line = to + (channel * p.taps + tap) * width;
        const float* from = x + channel * p.in_plane + place.offset;
        std::fill(line, line + place.begin, 0.0f);
        if (stride == 1) {
          std::memcpy(line + place.begin, from + place.begin,
                      static_cast<size_t>(place.end - place.begin) * sizeof(float));
        } else {
          for (int64_t i = place.begin; i < place.end; ++i) line[i] = from[i * stride];
        }
        std::fill(line + place.end, line + run, 0.0f);
      }
    }
    column += run;
  }
  // Nobody reads the results of what lies behind the last window, but it must be numbers.
  const int64_t tail = count % width;
  if (tail == 0) return;
  float* const to = panels + count / width * width * depth;
  for (int64_t i = 0; i < depth; ++i) std::fill(to + i * width + tail, to + (i + 1) * width, 0.0f);
}

// A unit is a block of windows of one group of one element of the batch.
void RunConv(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ConvParams*>(launch.params);
  const int parts = PartsWithScratch(launch, p.scratch_parts);
  if (launch.part >= parts) return;
  const auto* x = static_cast<const float*>(launch.operands[0]);
  const auto* weights = static_cast<const float*>(launch.operands[1]);
  const auto* bias = p.has_bias ? static_cast<const float*>(launch.operands[2]) : nullptr;
  auto* out = static_cast<float*>(launch.operands[p.out]);
  float* const panels =
      static_cast<float*>(launch.operands[p.workspace]) + launch.part * p.scratch_floats;
  const int64_t blocks = (p.out_plane + p.block - 1) / p.block;
  const int64_t batch = LiveOf(p.batch, p.batch_rows, *launch.frame);
  const ItemRange units = RangeOfPart(batch * p.groups * blocks, 1, launch.part, parts);
  for (int64_t unit = units.begin; unit < units.end; ++unit) {
    const int64_t group = unit / blocks;  // of all groups of the batch
    const int64_t first = unit % blocks * p.block;
    const int64_t count = std::min(p.block, p.out_plane - first);
    FillPanels(p, x + group * p.group_channels * p.in_plane, first, count, panels);
    const int64_t map = group % p.groups * p.group_maps;
    float* const c = out + group * p.group_maps * p.out_plane + first;
    p.kernels->part({.a = weights + map * p.depth(),
                     .lda = p.depth(),
                     .packed_b = panels,
                     .c = c,
                     .ldc = p.out_plane,
                     .n = count,
                     .k = p.depth()},
                    {0, p.group_maps, 0, p.kernels->Panels(count)});
    if (bias == nullptr) continue;
    for (int64_t i = 0; i < p.group_maps; ++i) {
      float* const line = c + i * p.out_plane;
      for (int64_t j = 0; j < count; ++j) line[j] += bias[map + i];
    }
  }
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
  p.batch_rows = node.batch_rows();
  p.groups = node.attributes().Int("group", 1);
  p.group_channels = weight[1];
  p.group_maps = weight[0] / p.groups;
  p.taps = NumElements(p.windows.kernel);
  p.in_plane = NumElements(p.spatial);
  p.out_plane = NumElements(p.windows.out);
  p.has_bias = node.has_input(2);
  if (p.depth() == 0 || p.group_maps == 0 || p.spatial.size() > kMaxDims) return {};
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
  const int64_t panels =
      std::clamp<int64_t>(kBlockFloats / (p.depth() * p.kernels->panel_columns), 1,
                          std::min(kMaxBlockPanels, p.kernels->Panels(p.out_plane)));
  p.block = panels * p.kernels->panel_columns;
  p.out = static_cast<int>(node.num_inputs());
  p.workspace = static_cast<int>(node.num_inputs() + node.num_outputs());
  p.scratch_floats = static_cast<int64_t>(AlignUp(p.block * p.depth(), 16));
  p.scratch_parts = target.scratch_parts;
  const double flops =
      2.0 * static_cast<double>(NumElements(node.out_shape())) * static_cast<double>(p.depth());
  const size_t workspace = sizeof(float) * p.scratch_floats * p.scratch_parts;
  const bool takes_live_rows = p.batch_rows > 0 && p.batch % p.batch_rows == 0;
  Candidate candidate = MakeCandidate(target, node, "conv", RunConv, std::move(p), flops);
  candidate.option.workspace_bytes = workspace;
  candidate.option.takes_live_rows = takes_live_rows;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
