// Convolutions of few channels, which lie behind the batch, whose results have their maps last: the
// first of a model of images or spectra. What a block of rows of windows sees is copied, with its
// padding; see few_channels.h. Sums are those of plan_conv.cc to the bit.
#include <algorithm>

#include "runtime/device/cpu/few_channels.h"
#include "runtime/device/cpu/plan_conv.h"
#include "runtime/ops/conv.h"

namespace reprise::cpu {
namespace {

// Rows of windows at a time, which share what they see.
constexpr int64_t kMostRows = 4;
// What windows of one see is copied for each, and stays in the second-level cache.
constexpr int64_t kMaxCopy = 64 << 10;

struct ConvToLastParams {
  const FewChannelKernels* kernels = nullptr;
  ConvFinish finish = nullptr;
  ConvActivation activation;
  Strips strips;
  int64_t batch = 0, batch_rows = 0;
  int64_t channels = 0, maps = 0;
  int64_t rows = 0;                         // of windows, at a time
  int64_t copy_rows = 0, copy_columns = 0;  // of a plane
  std::vector<int64_t> taps;                // in the copy
  bool has_bias = false;
  int residual = -1;  // among the operands
  int out = 0, workspace = 0;
  int scratch_parts = 0;

  int64_t copy_floats() const { return channels * copy_rows * copy_columns; }
};

// What rows of windows from `first` on see of the planes at `x`.
void CopySeen(const ConvToLastParams& p, const float* x, int64_t first, float* copy) {
  const Strips& s = p.strips;
  const int64_t left = std::min(s.pad.columns, p.copy_columns);
  const int64_t inside = std::clamp<int64_t>(s.in.columns, 0, p.copy_columns - left);
  for (int64_t channel = 0; channel < p.channels; ++channel) {
    for (int64_t i = 0; i < p.copy_rows; ++i) {
      const int64_t row = first * s.stride.rows - s.pad.rows + i;
      if (row < 0 || row >= s.in.rows) {
        copy = std::fill_n(copy, p.copy_columns, 0.0f);
        continue;
      }
      copy = std::fill_n(copy, left, 0.0f);
      copy = std::copy_n(x + (channel * s.in.rows + row) * s.in.columns, inside, copy);
      copy = std::fill_n(copy, p.copy_columns - left - inside, 0.0f);
    }
  }
}

// A unit is a block of rows of one element of the batch.
void RunConvToLast(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ConvToLastParams*>(launch.params);
  const Strips& s = p.strips;
  const auto* x = static_cast<const float*>(launch.operands[0]);
  const auto* residual =
      p.residual < 0 ? nullptr : static_cast<const float*>(launch.operands[p.residual]);
  auto* out = static_cast<float*>(launch.operands[p.out]);
  const int64_t blocks = (s.out.rows + p.rows - 1) / p.rows;
  const int64_t units = LiveOf(p.batch, p.batch_rows, *launch.frame) * blocks;
  const int parts = PartsWithScratch(launch, p.scratch_parts);
  if (launch.part >= parts) return;
  float* const copy =
      static_cast<float*>(launch.operands[p.workspace]) + launch.part * p.copy_floats();
  FewChannels of_row = {
      .windows = s.out.columns,
      .stride = s.stride.columns,
      .taps = p.taps.data(),
      .num_taps = static_cast<int64_t>(p.taps.size()),
      .weights = static_cast<const float*>(launch.operands[1]),
      .maps = p.maps,
      .bias = p.has_bias ? static_cast<const float*>(launch.operands[2]) : nullptr,
      .bounded = p.activation.clip() && residual == nullptr,
      .low = p.activation.low,
      .high = p.activation.high};
  const int64_t row_floats = s.out.columns * p.maps;
  const ItemRange range = RangeOfPart(units, 1, launch.part, parts);
  for (int64_t unit = range.begin; unit < range.end; ++unit) {
    const int64_t element = unit / blocks, first = unit % blocks * p.rows;
    const int64_t rows = std::min(p.rows, s.out.rows - first);
    CopySeen(p, x + element * p.channels * s.in.rows * s.in.columns, first, copy);
    const int64_t at = (element * s.out.rows + first) * row_floats;
    for (int64_t row = 0; row < rows; ++row) {
      of_row.x = copy + row * s.stride.rows * p.copy_columns;
      of_row.y = out + at + row * row_floats;
      p.kernels->convolve(of_row);
    }
    if (of_row.bounded) continue;
    p.finish({.y = out + at,
              .ld = rows * row_floats,
              .rows = 1,
              .columns = rows * row_floats,
              .residual = residual == nullptr ? nullptr : residual + at,
              .ld_residual = rows * row_floats},
             p.activation);
  }
}

}  // namespace

std::vector<Candidate> PlanConvToLast(const CpuTarget& target, const NodeView& node) {
  constexpr size_t kMaxDims = 2;
  const Shape &x = node.shape(0), &weight = node.shape(1);
  absl::StatusOr<ops::Windows> windows =
      ops::WindowsOf(node.node(), x, std::vector<int64_t>(weight.begin() + 2, weight.end()));
  const std::optional<ConvActivation> activation = ConvActivationOf(node.attributes());
  if (!windows.ok() || !activation.has_value() || NumElements(node.out_shape()) == 0 ||
      NumElements(x) == 0 || x.size() > kMaxDims + 2 || !node.is_parameter(1) ||
      node.attributes().Int("group", 1) != 1) {
    return {};
  }
  Shape spatial(x.begin() + 2, x.end());
  LayColumnsDown(*windows, spatial);
  ConvToLastParams p;
  p.kernels = &FewChannelKernelsFor(target.isa);
  p.finish = ConvFinishFor(target.isa);
  p.activation = *activation;
  p.strips = StripsOf(*windows, spatial);
  const Strips& s = p.strips;
  p.batch = x[0];
  p.batch_rows = p.batch % std::max<int64_t>(node.batch_rows(), 1) == 0 ? node.batch_rows() : 0;
  p.channels = x[1];
  p.maps = weight[0];
  p.rows = Even(s.out.rows, kMostRows);
  p.copy_rows = (p.rows - 1) * s.stride.rows + (s.kernel.rows - 1) * s.dilation.rows + 1;
  p.copy_columns =
      (s.out.columns - 1) * s.stride.columns + (s.kernel.columns - 1) * s.dilation.columns + 1;
  if (p.copy_floats() > kMaxCopy) return {};
  for (int64_t channel = 0; channel < p.channels; ++channel) {
    for (int64_t i = 0; i < s.kernel.rows; ++i) {
      for (int64_t j = 0; j < s.kernel.columns; ++j) {
        p.taps.push_back((channel * p.copy_rows + i * s.dilation.rows) * p.copy_columns +
                         j * s.dilation.columns);
      }
    }
  }
  p.has_bias = node.has_input(2);
  if (node.has_input(3)) p.residual = 3;
  p.out = static_cast<int>(node.num_inputs());
  p.workspace = static_cast<int>(node.num_inputs() + node.num_outputs());
  p.scratch_parts = target.scratch_parts;
  const size_t workspace = sizeof(float) * p.copy_floats() * p.scratch_parts;
  const double flops =
      2.0 * static_cast<double>(NumElements(node.out_shape())) * static_cast<double>(p.taps.size());
  const bool takes_live_rows = p.batch_rows > 0;
  // [maps, channels, kernel...] by channel and tap.
  std::vector<int64_t> order;
  Shape by_tap;
  for (size_t i = 0; i < weight.size(); ++i) {
    order.push_back(static_cast<int64_t>((i + 1) % weight.size()));
    by_tap.push_back(weight[order.back()]);
  }
  Candidate candidate =
      MakeCandidate(target, node, "conv_to_last", RunConvToLast, std::move(p), flops);
  candidate.option.workspace_bytes = workspace;
  candidate.option.takes_live_rows = takes_live_rows;
  candidate.option.prepare.push_back({.input = 1,
                                      .op = "Transpose",
                                      .attributes = {{"perm", std::move(order)}},
                                      .dtype = DType::kFloat32,
                                      .shape = std::move(by_tap)});
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
