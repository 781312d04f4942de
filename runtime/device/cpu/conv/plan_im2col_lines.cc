// Convolutions of few maps, or with few maps a group: products read the elements in place.
//
// A panel of windows (plan_conv.cc) pays if many maps read it. Here a copy of the rows that a block
// of windows sees is the panel: its lines lie end to end (im2col_lines.h), so that a vector of
// windows is a run of it for every tap. Every element is summed in the order of channels and taps
// as in plan_conv.cc, to the bit. Along one dim any number of maps is computed this way, in the
// order of taps and channels, as in plan_conv_weights.cc.
#include <algorithm>

#include "runtime/device/cpu/conv/im2col_lines.h"
#include "runtime/device/cpu/conv/plan_conv.h"
#include "runtime/device/cpu/gemm/conv_product.h"
#include "runtime/ops/windows/conv_op.h"

namespace reprise::cpu {
namespace {

// With more maps a panel of a plane costs less than the loads that cross lines of the cache.
constexpr int64_t kMostMaps = 32;
// With fewer elements of a window, taking the sums from runs to rows costs more than panels.
constexpr int64_t kFewestElements = 32;
// The copied lines of a block: a small part of the L2 cache.
constexpr int64_t kCopyFloats = 32 << 10;
constexpr int64_t kMostCopyFloats = 1 << 20;
constexpr int64_t kMostLineTaps = 1 << 14;  // taps of all channels
constexpr int64_t kMostLineColumns = 768;
// The limit on the sums on their way from runs to rows.
constexpr int64_t kSumFloats = 5 << 10;
// Blocks a part, so that none waits long for the others.
constexpr int64_t kBlocksOfPart = 4;

struct ConvLinesParams : ConvLaunch {
  ConvLines lines;
  const ConvLineKernels* line_kernels = nullptr;
  const ConvProductKernels* kernels = nullptr;
  int64_t groups = 1, channels = 0, maps = 0;  // channels and maps of one group
  int64_t sum_rows = 1;                        // rows of windows whose sums are held at a time
  int64_t copy_floats = 0, sums_ld = 0;

  int64_t depth() const { return channels * lines.kernel.rows * lines.kernel.columns; }
  // Runs are rows: results go directly where they belong.
  bool one_row() const { return lines.out.rows == 1; }
};

// Convolves tiles `tiles` of the maps with rows [row, row + rows) of the windows of a block, whose
// lines are copied; `at` belongs to one group of one element of the batch.
void ConvolveRows(const ConvLinesParams& p, const ConvOperands& at, const Strip& block,
                  const ItemRange& tiles, int64_t row, int64_t rows) {
  const float* const seen = at.scratch;
  float* const sums = at.scratch + p.copy_floats;
  const ConvLines& l = p.lines;
  const int64_t ld = l.out_plane(), columns = block.size.columns;
  const int64_t first = (block.first.rows + row) * l.out.columns + block.first.columns;
  const int64_t run = l.Run(rows, columns);
  const int64_t map = p.kernels->MapOf(tiles.begin, p.maps);
  const int64_t maps = p.kernels->MapOf(tiles.end, p.maps) - map;
  const bool clips = p.activation.clip() && (at.residual == nullptr || p.one_row());
  ConvProduct product = {.weights = at.weights,
                         .maps = p.maps,
                         .depth = p.depth(),
                         .end_k = p.depth(),
                         .taps = l.taps.data(),
                         .ld = p.one_row() ? ld : p.sums_ld,
                         .bias = at.bias,
                         .ld_residual = ld,
                         .bounded = clips,
                         .low = p.activation.low,
                         .high = p.activation.high};
  for (int64_t window = 0; window < run; window += product.columns) {
    product.in_place = seen + row * l.line + window;
    product.y = p.one_row() ? at.out + first + window : sums + window;
    product.columns = p.kernels->NextColumns(run - window);
    if (l.by_tap) {
      const ItemRange taps = l.TapsInside(first + window, product.columns);
      product.begin_k = taps.begin * p.channels;
      product.end_k = taps.end * p.channels;
      product.taps = l.taps.data() + product.begin_k;
    }
    if (p.one_row()) product.residual = at.ResidualAt(first + window);
    p.kernels->multiply(product, tiles.begin, tiles.end);
  }
  const float* const residual = p.one_row() ? nullptr : at.residual;
  // The elements between rows are finished too, unless there is a residual.
  const ConvRows run_of_maps = {.y = (p.one_row() ? at.out + first : sums) + map * product.ld,
                                .ld = product.ld,
                                .rows = maps,
                                .columns = run};
  if (!clips && residual == nullptr) p.finish(run_of_maps, p.activation);
  if (p.one_row()) return;
  for (int64_t i = map; i < map + maps; ++i) {
    p.line_kernels->spread(sums + i * p.sums_ld, l.line, rows, columns, at.out + i * ld + first,
                           l.out.columns);
  }
  if (residual == nullptr) return;
  const bool whole_rows = columns == l.out.columns;
  for (int64_t i = 0; i < (whole_rows ? 1 : rows); ++i) {
    const int64_t begin = map * ld + first + i * l.out.columns;
    p.finish({.y = at.out + begin,
              .ld = ld,
              .rows = maps,
              .columns = whole_rows ? rows * columns : columns,
              .residual = residual + begin,
              .ld_residual = ld},
             p.activation);
  }
}

// How blocks are split where there are few of them: blocks of one row by windows, so that each part
// copies only the elements of its windows; all others by tiles of maps.
struct Cut {
  int64_t windows = 0;  // windows of a piece; 0: split by tiles
  int64_t pieces = 1;   // pieces of a block
};
Cut CutFor(const ConvLinesParams& p, int64_t blocks, int parts) {
  constexpr int64_t kPieceVectors = 2;  // fewer wait for their sums
  const int64_t windows = kPieceVectors * p.kernels->vector_columns;
  const int64_t pieces = (p.lines.block.columns + windows - 1) / windows;
  if (p.one_row() && blocks * pieces >= 2 * parts) return {windows, pieces};
  return {0, p.kernels->Tiles(p.maps)};
}

// Runs units: a unit is a piece of a block of one group of one element of the batch.
void RunConvLines(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ConvLinesParams*>(launch.params);
  const ConvLines& l = p.lines;
  const int64_t blocks = l.blocks(), all_blocks = p.Live(launch) * p.groups * blocks;
  const Cut cut = CutFor(p, all_blocks, PartsWithScratch(launch, p.scratch_parts));
  const int parts = p.Parts(launch, all_blocks * cut.pieces);
  if (launch.part >= parts) return;
  const ConvOperands all = p.Operands(launch);
  const int64_t grain = all_blocks < kFewConvBlocks * parts ? 1 : cut.pieces;
  const ItemRange range = RangeOfPart(all_blocks * cut.pieces, grain, launch.part, parts);
  for (int64_t unit = range.begin, next; unit < range.end; unit = next) {
    const int64_t index = unit / cut.pieces;
    next = std::min(range.end, (index + 1) * cut.pieces);
    const ItemRange pieces = {unit - index * cut.pieces, next - index * cut.pieces};
    Strip block = l.BlockOf(index % blocks);
    ItemRange tiles = {0, p.kernels->Tiles(p.maps)};
    if (cut.windows == 0) {
      tiles = pieces;
    } else {
      const int64_t begin = std::min(block.size.columns, pieces.begin * cut.windows);
      block.size.columns = std::min(block.size.columns, pieces.end * cut.windows) - begin;
      block.first.columns += begin;
      if (block.size.columns == 0) continue;
    }
    const int64_t slab = index / blocks;  // a group of one element of the batch
    const int64_t map = slab % p.groups * p.maps, result = slab * p.maps * l.out_plane();
    for (int64_t channel = 0; channel < p.channels; ++channel) {
      p.line_kernels->copy(l, block, all.x + (slab * p.channels + channel) * l.in_plane(),
                           all.scratch + channel * l.channel_floats());
    }
    const ConvOperands at = {.weights = all.weights + map * p.depth(),
                             .bias = all.BiasOf(map),
                             .residual = all.ResidualAt(result),
                             .out = all.out + result,
                             .scratch = all.scratch};
    for (int64_t row = 0; row < block.size.rows; row += p.sum_rows) {
      ConvolveRows(p, at, block, tiles, row, std::min(p.sum_rows, block.size.rows - row));
    }
  }
}

// Makes blocks of whole rows where rows are short, with as many rows as there is room for.
Strips::Extent BlockFor(const ConvLinesParams& p, int parts) {
  ConvLines l = p.lines;
  Strips::Extent block = {1, Even(l.out.columns, kMostLineColumns)};
  l.SetBlock(block, 0);
  const int64_t row = p.channels * l.phases.rows * l.phases.columns * l.line;  // floats
  const int64_t beyond = (l.kernel.rows - 1) * l.dilation.rows / l.stride.rows;
  const int64_t planes = p.batch * p.groups * l.counts().columns;
  const int64_t wanted = (kBlocksOfPart * parts + planes - 1) / planes;
  const int64_t most = std::min(kCopyFloats / row - beyond, (l.out.rows + wanted - 1) / wanted);
  block.rows = Even(l.out.rows, std::clamp<int64_t>(most, 1, l.out.rows));
  return block;
}

}  // namespace

std::vector<Candidate> PlanConvLines(const CpuTarget& target, const NodeView& node,
                                     const ops::Windows& windows, const Shape& spatial,
                                     const ConvActivation& activation) {
  const Shape& weight = node.shape(1);
  ConvLinesParams p{ConvLaunch(target, node, activation)};
  p.groups = ConvOp::From(node.attributes()).group;
  p.maps = weight[0] / p.groups;
  p.channels = weight[1];
  const int64_t taps = NumElements(windows.kernel);
  if (!node.is_parameter(1) || spatial.size() > 2 || taps == 1 ||
      p.channels * taps > kMostLineTaps) {
    return {};
  }
  const Strips strips = StripsOf(windows, spatial);
  if (p.maps > kMostMaps && !strips.IsRow()) return {};
  p.lines.in = strips.in;
  p.lines.out = strips.out;
  p.lines.kernel = strips.kernel;
  p.lines.stride = strips.stride;
  p.lines.dilation = strips.dilation;
  p.lines.pad = strips.pad;
  p.lines.by_tap = strips.IsRow();
  if (!p.one_row() && p.depth() < kFewestElements) return {};
  p.lines.SetBlock(BlockFor(p, target.scratch_parts), p.channels);
  const ConvLines& l = p.lines;
  p.copy_floats = p.channels * l.channel_floats();
  // The elements between rows are multiplied too.
  const int64_t run = l.Run(l.block.rows, l.block.columns);
  if (p.copy_floats > kMostCopyFloats || run > 2 * l.block.rows * l.block.columns) return {};
  p.line_kernels = &ConvLineKernelsFor(target.isa);
  p.kernels = &ConvTapKernelsFor(target.isa);
  p.sum_rows = std::clamp<int64_t>(kSumFloats / (p.maps * l.line), 1, l.block.rows);
  p.sums_ld = static_cast<int64_t>(
      AlignUp(l.Run(p.sum_rows, l.block.columns) + kVectorFloats, kVectorFloats));
  p.scratch_floats = p.copy_floats + (p.one_row() ? 0 : p.maps * p.sums_ld);
  const int64_t pieces = std::max(p.kernels->Tiles(p.maps), l.block.columns);
  const int64_t units = p.batch * p.groups * l.blocks() * pieces;
  p.scratch_parts =
      static_cast<int>(std::min<int64_t>(units, PartsWithWeights(target, p.scratch_floats)));
  const double flops =
      2.0 * static_cast<double>(NumElements(node.out_shape())) * static_cast<double>(p.depth());
  PrepareStep pack =
      PackMaps(NumElements(weight), p.groups, p.kernels->tile_maps, l.by_tap ? taps : 1);
  return ConvCandidates(target, node, "conv_lines", RunConvLines, std::move(p), flops,
                        {std::move(pack)});
}

}  // namespace reprise::cpu
