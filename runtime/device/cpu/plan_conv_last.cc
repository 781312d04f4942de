// Convolutions of planes whose channels lie last, whose results do so too. What a window sees of a
// group is a row of a product with the group's packed weights: a run of channels for each tap.
// Where windows are elements, and along one dim without gaps, these are rows where they lie; but
// for the padding, with which what a block of windows sees is copied. Sums are those of
// plan_conv.cc to the bit where a window is an element, and those of plan_conv_lines.cc along one
// dim.
#include <algorithm>

#include "runtime/device/cpu/plan_conv.h"
#include "runtime/device/cpu/window_rows.h"
#include "runtime/ops/conv.h"

namespace reprise::cpu {
namespace {

struct ConvLastParams {
  const GemmKernels* products = nullptr;
  ConvFinish finish = nullptr;
  ConvActivation activation;
  WindowRows rows;
  int64_t batch = 0, batch_rows = 0;
  int64_t groups = 1, maps = 0;  // maps: of a group
  int64_t block = 0;             // windows at a time
  bool has_bias = false;
  int residual = -1;  // among the operands
  int out = 0, workspace = 0;
  int scratch_parts = 0;

  // The elements of a batch are one plane.
  bool joined() const { return rows.kind == WindowRows::Kind::kElements; }
};

// A unit is a panel of the maps of a block of windows of a group.
void RunConvLast(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ConvLastParams*>(launch.params);
  const auto* x = static_cast<const float*>(launch.operands[0]);
  const auto* weights = static_cast<const float*>(launch.operands[1]);
  const auto* bias = p.has_bias ? static_cast<const float*>(launch.operands[2]) : nullptr;
  const auto* residual =
      p.residual < 0 ? nullptr : static_cast<const float*>(launch.operands[p.residual]);
  auto* out = static_cast<float*>(launch.operands[p.out]);
  const int64_t live = LiveOf(p.batch, p.batch_rows, *launch.frame);
  const int64_t plane = (p.joined() ? live : 1) * p.rows.out_plane();
  const int64_t blocks_of_plane = (plane + p.block - 1) / p.block;
  const int64_t blocks = (p.joined() ? 1 : live) * p.groups * blocks_of_plane;
  const int64_t width = p.products->panel_columns, panels = p.products->Panels(p.maps);
  const int64_t scratch_floats = p.rows.scratch_floats, depth = p.rows.depth();
  const int parts = static_cast<int>(std::min<int64_t>(
      blocks * panels,
      scratch_floats == 0 ? launch.parts : PartsWithScratch(launch, p.scratch_parts)));
  if (launch.part >= parts) return;
  float* const scratch = scratch_floats == 0 ? nullptr
                                             : static_cast<float*>(launch.operands[p.workspace]) +
                                                   launch.part * scratch_floats;
  const int64_t all_maps = p.groups * p.maps;
  const int64_t grain = blocks < kFewConvBlocks * parts ? 1 : panels;
  const ItemRange units = RangeOfPart(blocks * panels, grain, launch.part, parts);
  for (int64_t unit = units.begin, next; unit < units.end; unit = next) {
    const int64_t block = unit / panels;
    next = std::min(units.end, (block + 1) * panels);
    const int64_t first = block % blocks_of_plane * p.block;
    const WindowRows::Range windows = {first, std::min(p.block, plane - first)};
    const int64_t group = block / blocks_of_plane % p.groups;
    const int64_t element = block / blocks_of_plane / p.groups;
    const float* const of_group = x + element * p.rows.in_floats() + group * p.rows.channels;
    const ItemRange of = {unit - block * panels, next - block * panels};
    const int64_t map = of.begin * width;
    const int64_t at = (element * plane + first) * all_maps + group * p.maps;
    p.products->part({.a = p.rows.Of(of_group, windows, scratch),
                      .lda = p.rows.row_floats,
                      .packed_b = weights + group * p.products->PackedFloats(depth, p.maps),
                      .c = out + at,
                      .ldc = all_maps,
                      .n = p.maps,
                      .k = depth,
                      .bias = bias == nullptr ? nullptr : bias + group * p.maps},
                     {0, windows.count, of.begin, of.end});
    p.finish({.y = out + at + map,
              .ld = all_maps,
              .rows = windows.count,
              .columns = std::min(p.maps, of.end * width) - map,
              .residual = residual == nullptr ? nullptr : residual + at + map,
              .ld_residual = all_maps},
             p.activation);
  }
}

}  // namespace

std::vector<Candidate> PlanConvLast(const CpuTarget& target, const NodeView& node) {
  constexpr size_t kMaxDims = 2;
  const std::optional<ConvActivation> activation = ConvActivationOf(node.attributes());
  const Shape &of_node = node.shape(0), &weight = node.shape(1);
  if (!activation.has_value() || NumElements(node.out_shape()) == 0 || NumElements(of_node) == 0 ||
      of_node.size() > kMaxDims + 2 || !node.is_parameter(1)) {
    return {};
  }
  const Shape x = ops::ChannelsFirst(of_node);
  absl::StatusOr<ops::Windows> windows =
      ops::WindowsOf(node.node(), x, std::vector<int64_t>(weight.begin() + 2, weight.end()));
  if (!windows.ok()) return {};
  Shape spatial(x.begin() + 2, x.end());
  LayColumnsDown(*windows, spatial);
  if (weight[1] == 1 && node.attributes().Int("group", 1) > 1) {
    std::vector<Candidate> alone = PlanDepthwiseLast(target, node, *windows, spatial, *activation);
    if (!alone.empty()) return alone;
  }
  std::vector<Candidate> tiles =
      PlanConvWinograd(target, node, *windows, *activation, /*last=*/true);
  if (!tiles.empty()) return tiles;
  ConvLastParams p;
  p.products = &GemmKernelsFor(target.isa);
  p.finish = ConvFinishFor(target.isa);
  p.activation = *activation;
  p.groups = node.attributes().Int("group", 1);
  p.batch = x[0];
  p.batch_rows = p.batch % std::max<int64_t>(node.batch_rows(), 1) == 0 ? node.batch_rows() : 0;
  p.maps = weight[0] / p.groups;
  p.block = std::min(kMaxConvRows, p.batch * NumElements(windows->out));
  p.rows = WindowRowsOf(StripsOf(*windows, spatial), p.groups, weight[1], p.block);
  p.has_bias = node.has_input(2);
  if (node.has_input(3)) p.residual = 3;
  p.out = static_cast<int>(node.num_inputs());
  p.workspace = static_cast<int>(node.num_inputs() + node.num_outputs());
  p.scratch_parts = target.scratch_parts;
  const int64_t groups = p.groups;
  const int64_t depth = p.rows.depth(), maps = p.maps, taps = p.rows.strips.num_taps();
  const size_t workspace = sizeof(float) * p.rows.scratch_floats * p.scratch_parts;
  const int64_t columns = p.products->panel_columns;
  const size_t packed = sizeof(float) * groups * p.products->PackedFloats(depth, maps);
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
                                                     {"groups", groups},
                                                     {"scale", 1.0f},
                                                     {"taps", taps},
                                                     {"transposed", int64_t{1}}},
                                      .dtype = DType::kUInt8,
                                      .shape = {static_cast<int64_t>(packed)}});
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
