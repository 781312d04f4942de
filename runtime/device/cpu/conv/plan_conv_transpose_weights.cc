// Transposed convolutions of small planes: their elements times the packed weights.
//
// Panels of windows (plan_conv_transpose.cc) are mostly empty where a plane has few windows, and
// the weights are then read for few results. Here the elements of several planes are the rows of a
// product, the taps of all maps its columns, and the weights stream by as in any product. The
// results are added up in the planes of the result, in the order of elements and taps, so that no
// division of the work changes a bit.
#include <algorithm>
#include <numeric>

#include "runtime/device/cpu/conv/plan_conv.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/simd/transpose.h"
#include "runtime/ops/windows/conv_op.h"

namespace reprise::cpu {
namespace {

// With fewer columns the panels of the weights are the ones that are mostly empty.
constexpr int64_t kFewestPanelColumns = 32;
// The limit on the sums of a row: the maps of a part end with a panel.
constexpr int64_t kMostSumColumns = 2048;

struct TransposeWeightsParams : ConvLaunch {
  const GemmKernels* products = nullptr;
  Transpose transpose = nullptr;
  int64_t channels = 0, maps = 0, taps = 0;
  int64_t in_plane = 0, out_plane = 0;
  int64_t elements = 1;   // elements of the batch in a block
  int64_t unit_maps = 0;  // maps whose columns fill whole panels
  // Where each tap of each element is in a plane of the result; out_plane: outside.
  std::vector<int32_t> places;
  int64_t row_floats = 0;  // floats from an element to the next
  int64_t rows_floats = 0, sums_floats = 0;

  int64_t units() const { return (maps + unit_maps - 1) / unit_maps; }
};

// Adds up one map of one batch element, whose results begin at `sums`, rows `ld` apart.
void AddUpMap(const TransposeWeightsParams& p, const float* sums, int64_t ld, const float* bias,
              float* plane, float* out) {
  std::fill_n(plane, p.out_plane + 1, 0.0f);
  const int32_t* place = p.places.data();
  for (int64_t i = 0; i < p.in_plane; ++i, sums += ld, place += p.taps) {
    for (int64_t tap = 0; tap < p.taps; ++tap) plane[place[tap]] += sums[tap];
  }
  p.finish({.y = plane, .ld = p.out_plane, .rows = 1, .columns = p.out_plane, .bias = bias},
           p.activation);
  std::copy_n(plane, p.out_plane, out);
}

// Unit `unit` of a block of `count` elements from `element` on.
void RunUnit(const TransposeWeightsParams& p, const ConvOperands& at, int64_t unit, int64_t element,
             int64_t count) {
  const int64_t map = unit * p.unit_maps, maps = std::min(p.unit_maps, p.maps - map);
  const int64_t ld = p.unit_maps * p.taps;
  float* const sums = at.scratch + p.rows_floats;
  p.products->part({.a = at.scratch,
                    .lda = p.row_floats,
                    .packed_b = at.weights + map * p.taps * p.channels,
                    .c = sums,
                    .ldc = ld,
                    .n = maps * p.taps,
                    .k = p.channels},
                   {0, count * p.in_plane, 0, p.products->Panels(maps * p.taps)});
  for (int64_t e = 0; e < count; ++e) {
    for (int64_t m = 0; m < maps; ++m) {
      AddUpMap(p, sums + e * p.in_plane * ld + m * p.taps, ld, at.BiasOf(map + m),
               sums + p.sums_floats, at.out + ((element + e) * p.maps + map + m) * p.out_plane);
    }
  }
}

void RunTransposeWeights(const LaunchArgs& launch) {
  const auto& p = *static_cast<const TransposeWeightsParams*>(launch.params);
  const int64_t live = p.Live(launch);
  const int64_t units = p.units(), all = (live + p.elements - 1) / p.elements * units;
  const int parts = p.Parts(launch, all);
  if (launch.part >= parts) return;
  const ConvOperands at = p.Operands(launch);
  const ItemRange range = RangeOfPart(all, 1, launch.part, parts);
  for (int64_t unit = range.begin, next; unit < range.end; unit = next) {
    const int64_t block = unit / units;
    next = std::min(range.end, (block + 1) * units);
    const int64_t element = block * p.elements, count = std::min(p.elements, live - element);
    for (int64_t e = 0; e < count; ++e) {
      p.transpose(at.x + (element + e) * p.channels * p.in_plane, p.in_plane, p.channels,
                  p.in_plane, at.scratch + e * p.in_plane * p.row_floats, p.row_floats);
    }
    for (; unit < next; ++unit) RunUnit(p, at, unit - block * units, element, count);
  }
}

std::vector<int32_t> PlacesOf(const ops::TransposedWindows& t) {
  const ops::Windows& w = t.windows;
  const int64_t taps = NumElements(w.kernel);
  std::vector<int32_t> places(NumElements(w.out) * taps,
                              static_cast<int32_t>(NumElements(t.spatial)));
  for (int64_t tap = 0; tap < taps; ++tap) {
    ops::ForEachRowOfTap(w, t.spatial, tap,
                         [&](int64_t row, int64_t first, int64_t end, int64_t offset) {
                           for (int64_t i = first; i < end; ++i) {
                             places[(row * w.out.back() + i) * taps + tap] =
                                 static_cast<int32_t>(offset + i * w.strides.back());
                           }
                         });
  }
  return places;
}

}  // namespace

std::vector<Candidate> PlanConvTransposeWeights(const CpuTarget& target, const NodeView& node,
                                                const ops::TransposedWindows& transposed,
                                                const ConvActivation& activation) {
  const Shape &x = node.shape(0), &weight = node.shape(1);
  TransposeWeightsParams p{ConvLaunch(target, node, activation)};
  p.products = &GemmKernelsFor(target.isa);
  p.channels = x[1];
  p.maps = weight[1];
  p.taps = NumElements(transposed.windows.kernel);
  p.in_plane = NumElements(transposed.windows.out);
  p.out_plane = NumElements(transposed.spatial);
  const int64_t width = p.products->panel_columns, columns = p.maps * p.taps;
  p.unit_maps = width / std::gcd(width, p.taps);
  if (!node.is_parameter(1) || ConvTransposeOp::From(node.attributes()).group != 1 ||
      p.in_plane > kMostRowsOfPlane || p.out_plane > ConvWindows::kMaxCopy ||
      columns < kFewestPanelColumns || p.unit_maps * p.taps > kMostSumColumns) {
    return {};
  }
  p.transpose = TransposeFor(target.isa);
  p.elements = std::clamp<int64_t>(kMaxConvRows / p.in_plane, 1, p.batch);
  p.places = PlacesOf(transposed);
  p.row_floats = static_cast<int64_t>(AlignUp(p.channels, 16));
  p.rows_floats = p.elements * p.in_plane * p.row_floats;
  p.sums_floats = static_cast<int64_t>(AlignUp(p.elements * p.in_plane * p.unit_maps * p.taps, 16));
  p.scratch_floats =
      p.rows_floats + p.sums_floats + static_cast<int64_t>(AlignUp(p.out_plane + 1, 16));
  PrepareStep prepare = PackTapsOfMaps(*p.products, p.channels, columns);
  const double flops =
      2.0 * static_cast<double>(p.batch * p.in_plane) * static_cast<double>(NumElements(weight));
  return ConvCandidates(target, node, "conv_transpose_weights", RunTransposeWeights, std::move(p),
                        flops, {std::move(prepare)});
}

}  // namespace reprise::cpu
