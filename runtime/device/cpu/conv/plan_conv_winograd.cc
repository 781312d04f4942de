// Winograd convolutions of 3 x 3 windows with stride 1: tiles of four windows share the elements
// that they see (winograd.h).
//
// The tiles of a block are the rows of 16 products, one for each form, whose right sides are the
// forms of the weights, computed and packed once. A panel of maps at a time is multiplied in all
// forms, summed up to results, and transposed on its way to the planes. A block is a rectangle of
// the tiles of a plane or, where planes are small, all tiles of several elements of the batch.
// Every sum is computed in one order whatever the division, so that no bit depends on it.
//
// In NHWC the forms are computed in place and results go directly where they belong: nothing is
// transposed, and the bias joins the form that all four windows of a tile have.
//
// Windows of three dims are such windows in each slice that they see, and the products of the
// slices add up. A block then has the same rectangle in several slices, which share the forms of
// their elements; slices outside of the operand cost nothing.
#include <algorithm>

#include "runtime/device/cpu/conv/conv_plans.h"
#include "runtime/device/cpu/conv/plan_conv.h"
#include "runtime/device/cpu/conv/winograd.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/simd/transpose.h"
#include "runtime/ops/windows/conv.h"
#include "runtime/ops/windows/conv_op.h"
#include "runtime/ops/windows/window_tiles.h"

namespace reprise::cpu {
namespace {

// Tiles of a block: enough to pay for the weights that stream by, and few enough that their forms
// stay in an L2 cache.
constexpr int64_t kMinTiles = 32;
constexpr int64_t kMaxTiles = 112;
constexpr int64_t kFormFloats = 192 << 10;
// The limit on the slices of a block, which share most of their forms.
constexpr int64_t kMostSlices = 4;
// Rows and forms that lie a power of two apart share few sets of the cache.
constexpr int64_t kApart = 16;
// The form that the sums of each of the four windows have once.
constexpr int64_t kFormOfAll = 5;

struct Extent {
  int64_t rows = 0, columns = 0;
};

struct WinogradParams : ConvLaunch {
  const GemmKernels* products = nullptr;
  const WinogradKernels* kernels = nullptr;
  Transpose transpose = nullptr;
  int64_t channels = 0, maps = 0;
  Extent in, out, pad;   // extents of a plane; `pad` is in front
  Extent tiles, block;   // tiles of a plane, and at most in a block
  int64_t elements = 1;  // batch elements in a block
  // Along the dim in front of the planes.
  int64_t in_slices = 1, out_slices = 1, block_slices = 1;
  int64_t slice_taps = 1, slice_dilation = 1, slice_pad = 0;
  bool last = false;  // channels and maps

  int64_t num_panels() const { return products->Panels(maps); }
  // Returns the packed weights of one transform point of one slice tap.
  int64_t panel_floats() const { return products->PackedFloats(channels, 1); }
  Extent blocks_of_plane() const {
    return {(tiles.rows + block.rows - 1) / block.rows,
            (tiles.columns + block.columns - 1) / block.columns};
  }
  int64_t blocks() const {
    return (out_slices + block_slices - 1) / block_slices * blocks_of_plane().rows *
           blocks_of_plane().columns;
  }
  // Slices that `slices` neighbouring ones see.
  int64_t SeenSlices(int64_t slices) const { return slices + (slice_taps - 1) * slice_dilation; }
  int64_t in_plane() const { return in.rows * in.columns; }
  int64_t out_plane() const { return out.rows * out.columns; }
  int64_t most_tiles() const { return elements * block_slices * block.rows * block.columns; }
  int64_t most_seen_tiles() const {
    return elements * SeenSlices(block_slices) * block.rows * block.columns;
  }
  int64_t element_floats() const { return static_cast<int64_t>(AlignUp(channels, 16)) + kApart; }
  int64_t form_floats() const { return most_seen_tiles() * element_floats() + kApart; }
  int64_t sum_floats() const {
    return static_cast<int64_t>(AlignUp(most_tiles() * products->panel_columns, 16)) + kApart;
  }
  // Returns the pieces of a part's scratch, each aligned to 64 bytes.
  int64_t SeenFloats() const {
    return last ? 0 : (2 * block.rows + 2) * (2 * block.columns + 2) * element_floats();
  }
  int64_t ResultFloats() const {  // the last element is for results outside of the plane
    return static_cast<int64_t>(
        AlignUp((4 * block.rows * block.columns + 1) * products->panel_columns, 16));
  }
};

struct WinogradScratch {
  float *seen, *zeros, *forms, *sums, *results;
};

WinogradScratch ScratchAt(const WinogradParams& p, float* begin) {
  WinogradScratch s;
  s.seen = begin;
  s.zeros = s.seen + p.SeenFloats();
  s.forms = s.zeros + p.element_floats();
  s.sums = s.forms + kWinogradForms * p.form_floats();
  s.results = s.sums + kWinogradForms * p.sum_floats();
  return s;
}

int64_t ScratchFloats(const WinogradParams& p) {
  return p.SeenFloats() + p.element_floats() + kWinogradForms * (p.form_floats() + p.sum_floats()) +
         p.ResultFloats();
}

// Tiles of a plane: a rectangle, in neighbouring slices. And the parts of a plane that its
// windows and their elements are, without padding.
struct Block {
  int64_t first_slice, slices;
  int64_t first_seen, seen;  // slices; they may lie outside of the operand
  Extent first, size;
  Extent window, windows;
  Extent element, elements;

  int64_t num_tiles() const { return size.rows * size.columns; }  // tiles of a slice
};

// Sets [first, first + size) to the part of [begin, begin + count) that lies within [0, limit).
void Clip(int64_t begin, int64_t count, int64_t limit, int64_t& first, int64_t& size) {
  first = std::clamp<int64_t>(begin, 0, limit);
  size = std::clamp<int64_t>(begin + count, 0, limit) - first;
}

Block TileBlockAt(const WinogradParams& p, int64_t index) {
  const int64_t across = p.blocks_of_plane().columns, of_plane = across * p.blocks_of_plane().rows;
  Block b;
  b.first_slice = index / of_plane * p.block_slices;
  b.slices = std::min(p.block_slices, p.out_slices - b.first_slice);
  b.first_seen = b.first_slice - p.slice_pad;
  b.seen = p.SeenSlices(b.slices);
  index %= of_plane;
  b.first = {index / across * p.block.rows, index % across * p.block.columns};
  b.size = {std::min(p.block.rows, p.tiles.rows - b.first.rows),
            std::min(p.block.columns, p.tiles.columns - b.first.columns)};
  Clip(2 * b.first.rows, 2 * b.size.rows, p.out.rows, b.window.rows, b.windows.rows);
  Clip(2 * b.first.columns, 2 * b.size.columns, p.out.columns, b.window.columns, b.windows.columns);
  Clip(2 * b.first.rows - p.pad.rows, 2 * b.size.rows + 2, p.in.rows, b.element.rows,
       b.elements.rows);
  Clip(2 * b.first.columns - p.pad.columns, 2 * b.size.columns + 2, p.in.columns, b.element.columns,
       b.elements.columns);
  return b;
}

// Fills the forms of the elements of the tiles of `block` in slice `x` of the first channel, a row
// a tile.
void FillForms(const WinogradParams& p, const float* x, const Block& block,
               const WinogradScratch& scratch, float* forms) {
  const int64_t ld = p.in_slices * p.in_plane(), floats = p.element_floats();
  const int64_t columns = block.elements.columns;
  const int64_t first = block.element.rows * p.in.columns + block.element.columns;
  // The channels of an element are contiguous: `apart` from the next element's, and `row_apart`
  // from the next row's.
  const float* from = x + first * p.channels;
  int64_t apart = p.channels, row_apart = p.in.columns * p.channels;
  if (!p.last) {
    const bool whole_rows = columns == p.in.columns;
    const int64_t runs = whole_rows ? 1 : block.elements.rows;
    const int64_t run = whole_rows ? block.elements.rows * columns : columns;
    for (int64_t i = 0; i < runs; ++i) {
      p.transpose(x + first + i * p.in.columns, ld, p.channels, run,
                  scratch.seen + i * run * floats, floats);
    }
    from = scratch.seen;
    apart = floats;
    row_apart = columns * floats;
  }
  const float* seen[16];
  for (int64_t row = 0; row < block.size.rows; ++row) {
    for (int64_t column = 0; column < block.size.columns; ++column, forms += floats) {
      const int64_t top = 2 * (block.first.rows + row) - p.pad.rows - block.element.rows;
      const int64_t left =
          2 * (block.first.columns + column) - p.pad.columns - block.element.columns;
      for (int64_t i = 0; i < 4; ++i) {
        for (int64_t j = 0; j < 4; ++j) {
          const int64_t y = top + i, z = left + j;
          const bool inside = y >= 0 && y < block.elements.rows && z >= 0 && z < columns;
          seen[4 * i + j] = inside ? from + y * row_apart + z * apart : scratch.zeros;
        }
      }
      p.kernels->elements(seen, p.channels, p.form_floats(), forms);
    }
  }
}

// Fills the block with `count` elements of the batch from `x` on, in the slices that it sees.
void FillBlock(const WinogradParams& p, const float* x, const Block& block, int64_t count,
               const WinogradScratch& scratch) {
  for (int64_t i = 0; i < count * block.seen; ++i) {
    const int64_t slice = block.first_seen + i % block.seen;
    if (slice < 0 || slice >= p.in_slices) continue;  // no product reads them
    FillForms(p, x + (i / block.seen * p.channels * p.in_slices + slice) * p.in_plane(), block,
              scratch, scratch.forms + i * block.num_tiles() * p.element_floats());
  }
}

// Where the windows of a block go: the maps of a window lie side by side.
struct Results {
  float* begin;       // the first window
  int64_t apart;      // floats from a window to the next
  int64_t row_apart;  // floats from a row of windows to the next
};

// Fills the windows of one panel of maps of the tiles whose sums begin at `sums`. `outside`
// receives results that lie outside of the plane.
void FillResults(const WinogradParams& p, const Block& block, const float* sums, int64_t maps,
                 const Results& results, float* outside) {
  const int64_t floats = p.products->panel_columns;
  for (int64_t row = 0; row < block.size.rows; ++row) {
    for (int64_t column = 0; column < block.size.columns; ++column, sums += floats) {
      float* to[4];
      for (int64_t i = 0; i < 4; ++i) {
        const int64_t y = 2 * row + i / 2, z = 2 * column + i % 2;
        const bool inside = y < block.windows.rows && z < block.windows.columns;
        to[i] = inside ? results.begin + y * results.row_apart + z * results.apart : outside;
      }
      p.kernels->results(sums, p.sum_floats(), maps, to);
    }
  }
}

// Applies the epilogue to the results of a panel of NHWC maps, the first of which is at `first`.
void FinishLast(const WinogradParams& p, const Block& block, int64_t maps, const ConvOperands& all,
                int64_t first) {
  const int64_t row_apart = p.out.columns * p.maps;
  for (int64_t row = 0; row < block.windows.rows; ++row) {
    const int64_t at = first + row * row_apart;
    p.finish({.y = all.out + at,
              .ld = p.maps,
              .rows = block.windows.columns,
              .columns = maps,
              .residual = all.ResidualAt(at),
              .ld_residual = p.maps},
             p.activation);
  }
}

// Stores them in the planes of maps from `map` on, whose slice begins at `first`.
void Store(const WinogradParams& p, const Block& block, const float* results, int64_t map,
           int64_t maps, const ConvOperands& all, int64_t first) {
  const int64_t ld = p.out_slices * p.out_plane(), floats = p.products->panel_columns;
  const bool whole_rows = block.windows.columns == p.out.columns;
  const int64_t runs = whole_rows ? 1 : block.windows.rows;
  const int64_t run = block.windows.rows * block.windows.columns / runs;
  for (int64_t i = 0; i < runs; ++i) {
    const int64_t at = first + (block.window.rows + i) * p.out.columns + block.window.columns;
    p.transpose(results + i * run * floats, floats, run, maps, all.out + at, ld);
    p.finish({.y = all.out + at,
              .ld = ld,
              .rows = maps,
              .columns = run,
              .bias = all.BiasOf(map),
              .residual = all.ResidualAt(at),
              .ld_residual = ld},
             p.activation);
  }
}

// Returns the first unit (a panel of the maps of a block; both have several sizes) of part `part`
// of `parts`, so that each part has about the same work; `part` + 1 gives its end. The first part
// has at least one unit.
int64_t FirstUnit(const WinogradParams& p, int64_t live, int part, int parts) {
  const int64_t blocks = p.blocks(), panels = p.num_panels();
  const int64_t groups = (live + p.elements - 1) / p.elements;
  const int64_t end = groups * blocks * panels;
  if (part == 0 || part == parts) return part == 0 ? 0 : end;
  const int64_t tiles = p.out_slices * p.tiles.rows * p.tiles.columns;
  const int64_t before = live * tiles * p.maps * part / parts;  // products of tiles and maps
  const int64_t of_group = p.elements * tiles * p.maps;
  const int64_t group = before / of_group;
  const int64_t count = std::min(p.elements, live - group * p.elements);
  int64_t rest = before - group * of_group;
  for (int64_t index = 0; index < blocks; ++index) {
    const Block block = TileBlockAt(p, index);
    const int64_t of_block = block.num_tiles() * block.slices * count;
    if (rest < of_block * p.maps) {
      const int64_t width = p.products->panel_columns;
      const int64_t panel = std::min(panels, (rest / of_block + width / 2) / width);
      return std::max<int64_t>(1, (group * blocks + index) * panels + panel);
    }
    rest -= of_block * p.maps;
  }
  return end;
}

// Computes the products of one panel of maps and one form: the slices that a tap sees are the rows
// of one product for as many of a block's elements as lie side by side.
void MultiplyForm(const WinogradParams& p, const Block& block, int64_t count, const float* forms,
                  const float* weights, const float* bias, int64_t maps, float* sums) {
  const int64_t tiles = block.num_tiles(), width = p.products->panel_columns;
  // Every slice sees one that is not outside: no sums come before.
  const bool many = p.slice_taps > 1 || p.slice_pad != 0 || p.out_slices > p.in_slices;
  if (many) std::fill_n(sums, count * block.slices * tiles * width, 0.0f);
  for (int64_t tap = 0; tap < p.slice_taps; ++tap, weights += p.panel_floats()) {
    // Slices [begin, end) of the block see one of the operand.
    const int64_t first = block.first_seen + tap * p.slice_dilation;
    const int64_t begin = std::clamp<int64_t>(-first, 0, block.slices);
    const int64_t end = std::clamp<int64_t>(p.in_slices - first, begin, block.slices);
    const bool all = end - begin == block.seen;  // and so are the next element's
    for (int64_t e = 0; e < (all ? 1 : count) && begin < end; ++e) {
      float* const c = sums + (e * block.slices + begin) * tiles * width;
      p.products->part({.a = forms + (e * block.seen + begin + tap * p.slice_dilation) * tiles *
                                         p.element_floats(),
                        .lda = p.element_floats(),
                        .packed_b = weights,
                        .c = c,
                        .ldc = width,
                        .n = maps,
                        .k = p.channels,
                        .bias = bias,
                        .residual = many ? c : nullptr,
                        .ld_residual = width},
                       {0, (all ? count : 1) * (end - begin) * tiles, 0, 1});
    }
  }
}

void RunConvWinograd(const LaunchArgs& launch) {
  const auto& p = *static_cast<const WinogradParams*>(launch.params);
  const int64_t live = p.Live(launch);
  const int64_t blocks = p.blocks(), panels = p.num_panels();
  const int parts = PartsWithScratch(launch, p.scratch_parts);
  if (launch.part >= parts) return;
  const ConvOperands all = p.Operands(launch);
  const WinogradScratch scratch = ScratchAt(p, all.scratch);
  std::fill_n(scratch.zeros, p.element_floats(), 0.0f);
  const int64_t width = p.products->panel_columns, panel_floats = p.panel_floats();
  const ItemRange range = {FirstUnit(p, live, launch.part, parts),
                           FirstUnit(p, live, launch.part + 1, parts)};
  for (int64_t unit = range.begin, next; unit < range.end; unit = next) {
    const int64_t index = unit / panels;
    next = std::min(range.end, (index + 1) * panels);
    const Block block = TileBlockAt(p, index % blocks);
    const int64_t element = index / blocks * p.elements;
    const int64_t count = std::min(p.elements, live - element);
    FillBlock(p, all.x + element * p.channels * p.in_slices * p.in_plane(), block, count, scratch);
    for (int64_t panel = unit - index * panels; panel < next - index * panels; ++panel) {
      const int64_t map = panel * width, maps = std::min(width, p.maps - map);
      for (int64_t form = 0; form < kWinogradForms; ++form) {
        const bool with_bias = p.last && form == kFormOfAll;
        MultiplyForm(p, block, count, scratch.forms + form * p.form_floats(),
                     all.weights + (panel * kWinogradForms + form) * p.slice_taps * panel_floats,
                     with_bias ? all.BiasOf(map) : nullptr, maps,
                     scratch.sums + form * p.sum_floats());
      }
      float* const outside = scratch.results + p.ResultFloats() / width * width - width;
      for (int64_t i = 0; i < count * block.slices; ++i) {
        const float* const sums = scratch.sums + i * block.num_tiles() * width;
        if (p.last) {
          const int64_t first = (element + i) * p.out_plane() + block.window.rows * p.out.columns +
                                block.window.columns;
          const int64_t begin = first * p.maps + map;
          FillResults(p, block, sums, maps, {all.out + begin, p.maps, p.out.columns * p.maps},
                      outside);
          FinishLast(p, block, maps, all, begin);
          continue;
        }
        FillResults(p, block, sums, maps, {scratch.results, width, block.windows.columns * width},
                    outside);
        const int64_t at = (((element + i / block.slices) * p.maps + map) * p.out_slices +
                            block.first_slice + i % block.slices) *
                           p.out_plane();
        Store(p, block, scratch.results, map, maps, all, at);
      }
    }
  }
}

void SetSlices(const ops::Windows& windows, int64_t slices, WinogradParams& p) {
  p.in_slices = slices;
  p.out_slices = windows.out[0];
  p.slice_taps = windows.kernel[0];
  p.slice_dilation = windows.dilations[0];
  p.slice_pad = windows.pad_begin[0];
}

}  // namespace

std::vector<Candidate> PlanConvWinograd(const CpuTarget& target, const NodeView& node,
                                        const ops::Windows& windows,
                                        const ConvActivation& activation, bool last) {
  const Shape& weight = node.shape(1);
  const Shape x = last ? ops::ChannelsFirst(node.shape(0)) : node.shape(0);
  const size_t dims = x.size() - 2;
  if (dims < 2 || dims > 3 || windows.strides[0] != 1 || !node.is_parameter(1) ||
      ConvOp::From(node.attributes()).group != 1) {
    return {};
  }
  if (last && (dims != 2 || !ops::FillVectors(x[1], weight[0]))) return {};
  WinogradParams p{ConvLaunch(target, node, activation)};
  p.last = last;
  p.channels = x[1];
  p.maps = weight[0];
  p.in = {x[dims], x[dims + 1]};
  p.out = {windows.out[dims - 2], windows.out[dims - 1]};
  p.pad = {windows.pad_begin[dims - 2], windows.pad_begin[dims - 1]};
  if (dims == 3) SetSlices(windows, x[2], p);
  p.block_slices = Even(p.out_slices, kMostSlices);
  const auto of_plane = ops::TilesOf(windows, p.channels, p.maps, p.block_slices);
  if (!of_plane.has_value()) return {};
  p.tiles = {of_plane->rows, of_plane->columns};
  const int64_t tiles = of_plane->count();
  p.products = &GemmKernelsFor(target.isa);
  p.kernels = &WinogradKernelsFor(target.isa);
  p.transpose = TransposeFor(target.isa);
  const int64_t most =
      std::clamp(kFormFloats / (kWinogradForms * p.channels), kMinTiles, kMaxTiles);
  const int64_t of_slice = std::max<int64_t>(1, most / p.block_slices);
  p.block.columns = Even(p.tiles.columns, of_slice);
  p.block.rows = Even(p.tiles.rows, std::max<int64_t>(1, of_slice / p.block.columns));
  if (p.blocks() == 1) {
    p.elements = std::clamp<int64_t>(most / (tiles * p.out_slices), 1, p.batch);
  }
  p.scratch_floats = ScratchFloats(p);
  const int64_t packed = static_cast<int64_t>(sizeof(float)) * kWinogradForms * p.num_panels() *
                         p.slice_taps * p.panel_floats();
  const double flops = 2.0 * static_cast<double>(p.batch * p.out_slices * tiles * kWinogradForms) *
                       static_cast<double>(p.slice_taps * p.channels * p.maps);
  PrepareStep pack = {.input = 1,
                      .op = kPackWinogradOp,
                      .attributes = {{"panel", GemmKernelsFor(target.isa).panel_columns}},
                      .dtype = DType::kUInt8,
                      .shape = {packed}};
  return ConvCandidates(target, node, last ? "conv_winograd_last" : "conv_winograd",
                        RunConvWinograd, std::move(p), flops, {std::move(pack)});
}

}  // namespace reprise::cpu
