// Transposed convolutions into few maps: rows of the operand times the packed weights.
//
// Where there are few maps, making panels of the elements of windows costs more than the products
// (plan_conv_transpose.cc). Here the elements of a row are the rows of a product and the taps of
// all maps its columns; the results are added up in a band of rows of the result, which stays in
// the cache. Rows that reach into two bands are multiplied for both. Every element is summed in the
// order of rows, blocks of columns and taps, so that no division into bands changes a bit.
#include <algorithm>

#include "runtime/device/cpu/conv/plan_conv.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/simd/transpose.h"
#include "runtime/ops/windows/conv_op.h"

namespace reprise::cpu {
namespace {

// With more columns the panels of windows pay.
constexpr int64_t kMostBandColumns = 96;
constexpr int64_t kFewestChannels = 16;
// Elements of a row at a time: their products stay in the L1 cache.
constexpr int64_t kBlock = 96;
// Rows of a band, in strides: those that are multiplied twice must be few.
constexpr int64_t kBandStrides = 16;
constexpr int64_t kBandsOfPart = 2;
// The limit on the results of a band: half of a small L2 cache.
constexpr int64_t kMostBandFloats = 64 << 10;

struct TransposeBandsParams : ConvLaunch {
  const GemmKernels* products = nullptr;
  Transpose transpose = nullptr;
  int64_t channels = 0, maps = 0;
  int64_t in_rows = 0, in_columns = 0, out_rows = 0, out_columns = 0;
  int64_t kernel_rows = 0, kernel_columns = 0;
  int64_t stride_rows = 1, stride_columns = 1, dilation_rows = 1, dilation_columns = 1;
  int64_t pad_rows = 0, pad_columns = 0;
  int64_t band = 0;        // rows of the result
  int64_t row_floats = 0;  // floats from an element to the next
  int64_t rows_floats = 0, sums_floats = 0;

  int64_t columns() const { return maps * kernel_rows * kernel_columns; }
  int64_t bands() const { return (out_rows + band - 1) / band; }
};

// Rows [first, end) of the result.
struct Band {
  int64_t first, end;
};

// Adds the products of elements [column, column + count) of row `row` to the rows of the band.
void AddToBand(const TransposeBandsParams& p, const float* sums, int64_t row, int64_t column,
               int64_t count, Band band, float* results) {
  const int64_t ld = p.columns();
  for (int64_t map = 0; map < p.maps; ++map) {
    for (int64_t ky = 0; ky < p.kernel_rows; ++ky) {
      const int64_t y = row * p.stride_rows - p.pad_rows + ky * p.dilation_rows;
      const float* from = sums + (map * p.kernel_rows + ky) * p.kernel_columns;
      if (y < band.first || y >= band.end) continue;
      float* line = results + (map * (band.end - band.first) + y - band.first) * p.out_columns;
      for (int64_t kx = 0; kx < p.kernel_columns; ++kx) {
        // Element column + i goes to i * stride + shift; only places inside are kept.
        const int64_t shift = column * p.stride_columns - p.pad_columns + kx * p.dilation_columns;
        const int64_t stride = p.stride_columns;
        const int64_t first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
        const int64_t end =
            shift >= p.out_columns ? 0 : std::min(count, (p.out_columns - shift - 1) / stride + 1);
        for (int64_t i = first; i < end; ++i) line[shift + i * stride] += from[i * ld + kx];
      }
    }
  }
}

void RunBand(const TransposeBandsParams& p, const ConvOperands& at, int64_t element, Band band) {
  float* const rows = at.scratch;
  float* const sums = rows + p.rows_floats;
  float* const results = sums + p.sums_floats;
  const int64_t floats = (band.end - band.first) * p.out_columns;
  std::fill_n(results, p.maps * floats, 0.0f);
  const int64_t plane = p.in_rows * p.in_columns, columns = p.columns();
  const float* const x = at.x + element * p.channels * plane;
  // The rows of the operand that reach into the band.
  const int64_t reach = (p.kernel_rows - 1) * p.dilation_rows;
  const int64_t low = band.first + p.pad_rows - reach;
  const int64_t begin = low <= 0 ? 0 : (low + p.stride_rows - 1) / p.stride_rows;
  const int64_t end = std::min(p.in_rows, (band.end - 1 + p.pad_rows) / p.stride_rows + 1);
  for (int64_t row = begin; row < end; ++row) {
    for (int64_t column = 0; column < p.in_columns; column += kBlock) {
      const int64_t count = std::min(kBlock, p.in_columns - column);
      p.transpose(x + row * p.in_columns + column, plane, p.channels, count, rows, p.row_floats);
      p.products->part({.a = rows,
                        .lda = p.row_floats,
                        .packed_b = at.weights,
                        .c = sums,
                        .ldc = columns,
                        .n = columns,
                        .k = p.channels},
                       {0, count, 0, p.products->Panels(columns)});
      AddToBand(p, sums, row, column, count, band, results);
    }
  }
  p.finish({.y = results, .ld = floats, .rows = p.maps, .columns = floats, .bias = at.bias},
           p.activation);
  for (int64_t map = 0; map < p.maps; ++map) {
    std::copy_n(results + map * floats, floats,
                at.out + ((element * p.maps + map) * p.out_rows + band.first) * p.out_columns);
  }
}

// Runs units: a unit is a band of one element of the batch.
void RunTransposeBands(const LaunchArgs& launch) {
  const auto& p = *static_cast<const TransposeBandsParams*>(launch.params);
  const int64_t bands = p.bands();
  const int64_t units = p.Live(launch) * bands;
  const int parts = p.Parts(launch, units);
  if (launch.part >= parts) return;
  const ConvOperands at = p.Operands(launch);
  const ItemRange range = RangeOfPart(units, 1, launch.part, parts);
  for (int64_t unit = range.begin; unit < range.end; ++unit) {
    const int64_t first = unit % bands * p.band;
    RunBand(p, at, unit / bands, {first, std::min(first + p.band, p.out_rows)});
  }
}

}  // namespace

std::vector<Candidate> PlanConvTransposeBands(const CpuTarget& target, const NodeView& node,
                                              const ops::TransposedWindows& transposed,
                                              const ConvActivation& activation) {
  const Shape &x = node.shape(0), &weight = node.shape(1);
  const ops::Windows& w = transposed.windows;
  if (!node.is_parameter(1) || ConvTransposeOp::From(node.attributes()).group != 1 ||
      x.size() != 4 || x[1] < kFewestChannels) {
    return {};
  }
  TransposeBandsParams p{ConvLaunch(target, node, activation)};
  p.products = &GemmKernelsFor(target.isa);
  p.transpose = TransposeFor(target.isa);
  p.channels = x[1];
  p.maps = weight[1];
  p.in_rows = x[2], p.in_columns = x[3];
  p.out_rows = transposed.spatial[0], p.out_columns = transposed.spatial[1];
  p.kernel_rows = w.kernel[0], p.kernel_columns = w.kernel[1];
  p.stride_rows = w.strides[0], p.stride_columns = w.strides[1];
  p.dilation_rows = w.dilations[0], p.dilation_columns = w.dilations[1];
  p.pad_rows = w.pad_begin[0], p.pad_columns = w.pad_begin[1];
  const int64_t columns = p.columns();
  const int64_t each = (p.out_rows + kBandsOfPart * target.scratch_parts - 1) /
                       (kBandsOfPart * target.scratch_parts);
  p.band = std::min(p.out_rows, std::max(each, kBandStrides * p.stride_rows));
  p.band = std::min(
      p.band, std::max(kBandStrides * p.stride_rows, kMostBandFloats / (p.maps * p.out_columns)));
  if (columns > kMostBandColumns || p.maps * p.band * p.out_columns > 4 * kMostBandFloats)
    return {};
  p.row_floats = static_cast<int64_t>(AlignUp(p.channels, 16));
  p.rows_floats = kBlock * p.row_floats;
  p.sums_floats = static_cast<int64_t>(AlignUp(kBlock * columns, 16));
  p.scratch_floats = p.rows_floats + p.sums_floats +
                     static_cast<int64_t>(AlignUp(p.maps * p.band * p.out_columns, 16));
  PrepareStep prepare = PackTapsOfMaps(*p.products, p.channels, columns);
  const double flops = 2.0 * static_cast<double>(p.batch * p.in_rows * p.in_columns) *
                       static_cast<double>(NumElements(weight));
  return ConvCandidates(target, node, "conv_transpose_bands", RunTransposeBands, std::move(p),
                        flops, {std::move(prepare)});
}

}  // namespace reprise::cpu
