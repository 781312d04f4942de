// Convolutions of NHWC planes with NHWC results. The elements that a window sees of a group are
// a row of a product with the group's packed weights: a run of channels for each tap. Where
// windows are elements, and along one dim without gaps, these rows are read in place; where
// there is padding, the elements under a block of windows are copied with it. Sums equal the
// ones of plan_conv.cc to the bit where a window is an element, and the ones of
// plan_im2col_lines.cc along one dim.
#include <algorithm>

#include "runtime/device/cpu/conv/im2col_rows.h"
#include "runtime/device/cpu/conv/plan_conv.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/ops/windows/conv.h"
#include "runtime/ops/windows/conv_op.h"

namespace reprise::cpu {
namespace {

// With more elements than this in a row of a product, rows of taps are taken one after the other,
// and so they are where more than this share of the taps lies outside of the plane.
constexpr int64_t kDeep = 2048;
constexpr double kMuchOutside = 0.08;

struct ConvLastParams : ConvLaunch {
  const GemmKernels* products = nullptr;
  WindowRows rows;
  // One entry for each row of taps, in order, where the rows are many or mostly see padding; else
  // empty, and all taps are multiplied at once.
  std::vector<WindowRows> tap_rows;
  int64_t groups = 1, maps = 0;  // maps: of a group
  int64_t block = 0;             // windows at a time

  // Returns whether the elements of a batch are one plane.
  bool joined() const { return rows.kind == WindowRows::Kind::kElements; }
};

// The operands of one product: panels `panels` of the maps, for some windows of a group.
struct Operands {
  const float* x;
  const float* weights;  // packed
  const float* bias;     // null: none
  float* out;            // the result of the first map
  int64_t ld;
  ItemRange panels;
};

// Returns whether a row of taps has some of the plane for one of `windows`.
bool SeesPlane(const WindowRows& row, const WindowRows::Range& windows) {
  const Strips& s = row.strips;
  const int64_t first = windows.first / s.out.columns;
  const int64_t last = (windows.first + windows.count - 1) / s.out.columns;
  return last * s.stride.rows - s.pad.rows >= 0 && first * s.stride.rows - s.pad.rows < s.in.rows;
}

// Multiplies one row of taps after the other, each added to the sums of the rows before: where
// there are many taps, the elements of all of them do not fit into the L2 cache, and rows that lie
// outside of the plane are left out.
void MultiplyByTapRows(const ConvLastParams& p, const Operands& at,
                       const WindowRows::Range& windows, float* scratch) {
  const int64_t width = p.products->panel_columns, depth = p.rows.depth();
  bool first = true;
  for (size_t i = 0; i < p.tap_rows.size(); ++i) {
    const WindowRows& row = p.tap_rows[i];
    // If no row of taps sees the plane, the first one still sets the sums to zero.
    if (!SeesPlane(row, windows) && !(first && i + 1 == p.tap_rows.size())) continue;
    const float* const rows = row.Of(at.x, windows, scratch);
    for (int64_t panel = at.panels.begin; panel < at.panels.end; ++panel) {
      const int64_t map = panel * width;
      p.products->part(
          {.a = rows,
           .lda = row.row_floats,
           .packed_b = at.weights + map * depth + static_cast<int64_t>(i) * row.depth() * width,
           .c = at.out + map,
           .ldc = at.ld,
           .n = std::min(width, p.maps - map),
           .k = row.depth(),
           .bias = first && at.bias != nullptr ? at.bias + map : nullptr,
           .residual = first ? nullptr : at.out + map,
           .ld_residual = at.ld},
          {0, windows.count, 0, 1});
    }
    first = false;
  }
}

void Multiply(const ConvLastParams& p, const Operands& at, const WindowRows::Range& windows,
              float* scratch) {
  if (!p.tap_rows.empty()) return MultiplyByTapRows(p, at, windows, scratch);
  p.products->part({.a = p.rows.Of(at.x, windows, scratch),
                    .lda = p.rows.row_floats,
                    .packed_b = at.weights,
                    .c = at.out,
                    .ldc = at.ld,
                    .n = p.maps,
                    .k = p.rows.depth(),
                    .bias = at.bias},
                   {0, windows.count, at.panels.begin, at.panels.end});
}

// Runs units: a unit is a panel of the maps of a block of windows of a group.
void RunConvLast(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ConvLastParams*>(launch.params);
  const int64_t live = p.Live(launch);
  const int64_t plane = (p.joined() ? live : 1) * p.rows.out_plane();
  const int64_t blocks_of_plane = (plane + p.block - 1) / p.block;
  const int64_t blocks = (p.joined() ? 1 : live) * p.groups * blocks_of_plane;
  const int64_t width = p.products->panel_columns, panels = p.products->Panels(p.maps);
  const int parts = p.Parts(launch, blocks * panels);
  if (launch.part >= parts) return;
  const ConvOperands all = p.Operands(launch);
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
    const float* const of_group = all.x + element * p.rows.in_floats() + group * p.rows.channels;
    const ItemRange of = {unit - block * panels, next - block * panels};
    const int64_t map = of.begin * width;
    const int64_t at = (element * plane + first) * all_maps + group * p.maps;
    Multiply(p,
             {.x = of_group,
              .weights = all.weights + group * p.products->PackedFloats(p.rows.depth(), p.maps),
              .bias = all.BiasOf(group * p.maps),
              .out = all.out + at,
              .ld = all_maps,
              .panels = of},
             windows, all.scratch);
    p.finish({.y = all.out + at + map,
              .ld = all_maps,
              .rows = windows.count,
              .columns = std::min(p.maps, of.end * width) - map,
              .residual = all.ResidualAt(at + map),
              .ld_residual = all_maps},
             p.activation);
  }
}

// Returns the share of the rows of taps, over all rows of windows, that lie outside of the plane.
double ShareOutside(const Strips& s) {
  int64_t outside = 0;
  for (int64_t row = 0; row < s.out.rows; ++row) {
    for (int64_t tap = 0; tap < s.kernel.rows; ++tap) {
      const int64_t at = row * s.stride.rows - s.pad.rows + tap * s.dilation.rows;
      outside += at < 0 || at >= s.in.rows ? 1 : 0;
    }
  }
  return static_cast<double>(outside) / static_cast<double>(s.out.rows * s.kernel.rows);
}

// Takes rows of taps one after the other, and blocks that are rows of windows where these are
// short: then more rows of taps see nothing.
void DivideTaps(ConvLastParams& p) {
  const Strips s = p.rows.strips;
  if (s.out.columns <= p.block) p.block = p.block / s.out.columns * s.out.columns;
  p.scratch_floats = 0;
  for (int64_t i = 0; i < s.kernel.rows; ++i) {
    Strips row = s;
    row.kernel.rows = 1;
    row.pad.rows -= i * s.dilation.rows;
    p.tap_rows.push_back(WindowRowsOf(std::move(row), p.groups, p.rows.channels, p.block));
    p.scratch_floats = std::max(p.scratch_floats, p.tap_rows.back().scratch_floats);
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
  if (weight[1] == 1 && ConvOp::From(node.attributes()).group > 1) {
    std::vector<Candidate> alone = PlanDepthwiseLast(target, node, *windows, spatial, *activation);
    if (!alone.empty()) return alone;
  }
  std::vector<Candidate> tiles =
      PlanConvWinograd(target, node, *windows, *activation, /*last=*/true);
  if (!tiles.empty()) return tiles;
  ConvLastParams p{ConvLaunch(target, node, *activation)};
  p.products = &GemmKernelsFor(target.isa);
  p.groups = ConvOp::From(node.attributes()).group;
  p.maps = weight[0] / p.groups;
  p.block = std::min(kMaxConvRows, p.batch * NumElements(windows->out));
  p.rows = WindowRowsOf(StripsOf(*windows, spatial), p.groups, weight[1], p.block);
  p.scratch_floats = p.rows.scratch_floats;
  const Strips& s = p.rows.strips;
  const bool divisible = p.rows.kind == WindowRows::Kind::kCopied && s.kernel.rows > 1;
  if (divisible && (p.rows.depth() > kDeep || ShareOutside(s) > kMuchOutside)) DivideTaps(p);
  const int64_t depth = p.rows.depth();
  PrepareStep pack =
      PackMapsOfGroups(*p.products, p.groups, p.maps, depth, p.rows.strips.num_taps());
  const double flops =
      2.0 * static_cast<double>(NumElements(node.out_shape())) * static_cast<double>(depth);
  return ConvCandidates(target, node, "conv_last", RunConvLast, std::move(p), flops,
                        {std::move(pack)});
}

}  // namespace reprise::cpu
