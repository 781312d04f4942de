// Convolutions of planes whose channels lie last, whose results do so too. What a window sees is a
// row of a product with the packed weights: a run of channels for each tap. Where windows are
// elements these are rows where they lie. Sums of one tap are those of plan_conv.cc to the bit.
#include <algorithm>

#include "runtime/device/cpu/plan_conv.h"
#include "runtime/ops/conv.h"

namespace reprise::cpu {
namespace {

struct ConvLastParams {
  const GemmKernels* products = nullptr;
  ConvFinish finish = nullptr;
  ConvActivation activation;
  Strips strips;
  bool plain = false;  // a window is an element
  int64_t batch = 0, batch_rows = 0;
  int64_t channels = 0, maps = 0;
  int64_t block = 0;       // windows at a time
  int64_t row_floats = 0;  // of a copied row
  bool has_bias = false;
  int residual = -1;  // among the operands
  int out = 0, workspace = 0;
  int scratch_parts = 0;

  int64_t depth() const { return channels * strips.num_taps(); }
  int64_t out_plane() const { return strips.out.rows * strips.out.columns; }
};

// What `count` windows from `window` of the batch on see.
void CopyRows(const ConvLastParams& p, const float* x, int64_t window, int64_t count, float* rows) {
  const Strips& s = p.strips;
  const int64_t plane = p.out_plane(), channels = p.channels;
  for (int64_t end = window + count; window < end; ++window, rows += p.row_floats) {
    const float* const from = x + window / plane * s.in.rows * s.in.columns * channels;
    const int64_t row = window % plane / s.out.columns * s.stride.rows - s.pad.rows;
    const int64_t column = window % s.out.columns * s.stride.columns - s.pad.columns;
    float* to = rows;
    for (int64_t i = 0; i < s.kernel.rows; ++i) {
      const int64_t at_row = row + i * s.dilation.rows;
      const bool row_inside = at_row >= 0 && at_row < s.in.rows;
      const float* const line = from + at_row * s.in.columns * channels;
      if (row_inside && s.dilation.columns == 1 && column >= 0 &&
          column + s.kernel.columns <= s.in.columns) {
        to = std::copy_n(line + column * channels, s.kernel.columns * channels, to);
        continue;
      }
      for (int64_t j = 0; j < s.kernel.columns; ++j) {
        const int64_t at = column + j * s.dilation.columns;
        const bool inside = row_inside && at >= 0 && at < s.in.columns;
        to = inside ? std::copy_n(line + at * channels, channels, to)
                    : std::fill_n(to, channels, 0.0f);
      }
    }
  }
}

// A unit is a panel of the maps of a block of windows.
void RunConvLast(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ConvLastParams*>(launch.params);
  const auto* x = static_cast<const float*>(launch.operands[0]);
  const auto* bias = p.has_bias ? static_cast<const float*>(launch.operands[2]) : nullptr;
  const auto* residual =
      p.residual < 0 ? nullptr : static_cast<const float*>(launch.operands[p.residual]);
  auto* out = static_cast<float*>(launch.operands[p.out]);
  const int64_t windows = LiveOf(p.batch, p.batch_rows, *launch.frame) * p.out_plane();
  const int64_t blocks = (windows + p.block - 1) / p.block;
  const int64_t width = p.products->panel_columns, panels = p.products->Panels(p.maps);
  const int parts = static_cast<int>(std::min<int64_t>(
      blocks * panels, p.plain ? launch.parts : PartsWithScratch(launch, p.scratch_parts)));
  if (launch.part >= parts) return;
  float* const rows = p.plain ? nullptr
                              : static_cast<float*>(launch.operands[p.workspace]) +
                                    launch.part * p.block * p.row_floats;
  const int64_t grain = blocks < kFewConvBlocks * parts ? 1 : panels;
  const ItemRange units = RangeOfPart(blocks * panels, grain, launch.part, parts);
  for (int64_t unit = units.begin, next; unit < units.end; unit = next) {
    const int64_t block = unit / panels;
    next = std::min(units.end, (block + 1) * panels);
    const int64_t window = block * p.block, count = std::min(p.block, windows - window);
    if (!p.plain) CopyRows(p, x, window, count, rows);
    const ItemRange of = {unit - block * panels, next - block * panels};
    const int64_t map = of.begin * width, at = window * p.maps;
    p.products->part({.a = p.plain ? x + window * p.channels : rows,
                      .lda = p.plain ? p.channels : p.row_floats,
                      .packed_b = static_cast<const float*>(launch.operands[1]),
                      .c = out + at,
                      .ldc = p.maps,
                      .n = p.maps,
                      .k = p.depth(),
                      .bias = bias},
                     {0, count, of.begin, of.end});
    p.finish({.y = out + at + map,
              .ld = p.maps,
              .rows = count,
              .columns = std::min(p.maps, of.end * width) - map,
              .residual = residual == nullptr ? nullptr : residual + at + map,
              .ld_residual = p.maps},
             p.activation);
  }
}

bool IsPlain(const Strips& s) {
  const auto is = [](const Strips::Extent& extent, int64_t size) {
    return extent.rows == size && extent.columns == size;
  };
  return is(s.kernel, 1) && is(s.stride, 1) && is(s.pad, 0) && s.out.rows == s.in.rows &&
         s.out.columns == s.in.columns;
}

}  // namespace

std::vector<Candidate> PlanConvLast(const CpuTarget& target, const NodeView& node) {
  constexpr size_t kMaxDims = 2;
  const absl::StatusOr<ops::ConvLayout> layout = ops::ConvLayoutOf(node.attributes());
  const std::optional<ConvActivation> activation = ConvActivationOf(node.attributes());
  const Shape &of_node = node.shape(0), &weight = node.shape(1);
  if (!layout.ok() || !layout->x_last || !activation.has_value() ||
      NumElements(node.out_shape()) == 0 || NumElements(of_node) == 0 ||
      of_node.size() > kMaxDims + 2 || !node.is_parameter(1)) {
    return {};
  }
  const Shape x = ops::ChannelsFirst(of_node);
  absl::StatusOr<ops::Windows> windows =
      ops::WindowsOf(node.node(), x, std::vector<int64_t>(weight.begin() + 2, weight.end()));
  if (!windows.ok()) return {};
  Shape spatial(x.begin() + 2, x.end());
  LayColumnsDown(*windows, spatial);
  if (node.attributes().Int("group", 1) != 1) {
    return PlanDepthwiseLast(target, node, *windows, spatial, *activation);
  }
  ConvLastParams p;
  p.products = &GemmKernelsFor(target.isa);
  p.finish = ConvFinishFor(target.isa);
  p.activation = *activation;
  p.strips = StripsOf(*windows, spatial);
  p.plain = IsPlain(p.strips);
  p.batch = x[0];
  p.batch_rows = p.batch % std::max<int64_t>(node.batch_rows(), 1) == 0 ? node.batch_rows() : 0;
  p.channels = x[1];
  p.maps = weight[0];
  p.block = std::min(kMaxConvRows, p.batch * p.out_plane());
  p.has_bias = node.has_input(2);
  if (node.has_input(3)) p.residual = 3;
  p.out = static_cast<int>(node.num_inputs());
  p.workspace = static_cast<int>(node.num_inputs() + node.num_outputs());
  // An odd number of cache lines: rows that are written together do not share the cache's sets.
  p.row_floats = static_cast<int64_t>(AlignUp(p.depth(), 16)) | 16;
  p.scratch_parts = target.scratch_parts;
  const int64_t depth = p.depth(), maps = p.maps, taps = p.strips.num_taps();
  const size_t workspace = p.plain ? 0 : sizeof(float) * p.block * p.row_floats * p.scratch_parts;
  const int64_t columns = p.products->panel_columns;
  const size_t packed = sizeof(float) * p.products->PackedFloats(depth, maps);
  const double flops =
      2.0 * static_cast<double>(NumElements(node.out_shape())) * static_cast<double>(depth);
  const bool takes_live_rows = p.batch_rows > 0;
  Candidate candidate = MakeCandidate(target, node, "conv_last", RunConvLast, std::move(p), flops);
  candidate.option.workspace_bytes = workspace;
  candidate.option.takes_live_rows = takes_live_rows;
  candidate.option.prepare.push_back({.input = 1,
                                      .op = kPackOp,
                                      .attributes = {{"panel", columns},
                                                     {"maps", maps},
                                                     {"groups", int64_t{1}},
                                                     {"scale", 1.0f},
                                                     {"taps", taps},
                                                     {"transposed", int64_t{1}}},
                                      .dtype = DType::kUInt8,
                                      .shape = {static_cast<int64_t>(packed)}});
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
