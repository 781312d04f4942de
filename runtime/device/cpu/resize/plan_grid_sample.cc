// Samples planes linearly wherever a grid says: the neighbours of a place and their weights are
// found once for all channels.
#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/device/cpu/plan/plan.h"
#include "runtime/device/cpu/resize/resize_plans.h"
#include "runtime/ops/windows/grid_sample.h"

namespace reprise::cpu {
namespace {

constexpr int64_t kPlaceChunk = 64;  // places at a time

struct GridSampleParams {
  int64_t batch = 0, channels = 0, places = 0;
  int64_t rows = 0, columns = 0;
  bool border = false;  // outside values repeat the border, else are zero
  bool align_corners = false;
  int64_t batch_rows = 0;
};

// The two neighbours of a place along a dim; without a weight where there is none.
struct Neighbours {
  std::array<int64_t, 2> at;
  std::array<double, 2> weight;
};

// `place` is from -1 to 1.
Neighbours NeighboursOf(const GridSampleParams& p, float place, int64_t size) {
  const auto last = static_cast<double>(size - 1);
  double x = ops::GridPosition(place, size, p.align_corners);
  if (x != x) x = p.align_corners ? 0 : -0.5;  // as the reference treats NaN
  if (p.border) x = std::clamp(x, 0.0, last);
  // The place is neither far away nor NaN.
  if (!(x > -1 && x < static_cast<double>(size))) return {{0, 0}, {0, 0}};
  const double floor = std::floor(x), t = x - floor;
  const auto first = static_cast<int64_t>(floor);
  return {{std::max<int64_t>(first, 0), std::min(first + 1, size - 1)},
          {first < 0 ? 0 : 1 - t, first + 1 < size ? t : 0}};
}

void RunGridSample(const LaunchArgs& launch) {
  const auto& p = *static_cast<const GridSampleParams*>(launch.params);
  const auto* x = static_cast<const float*>(launch.operands[0]);
  const auto* grid = static_cast<const float*>(launch.operands[1]);
  auto* y = static_cast<float*>(launch.operands[2]);
  const int64_t plane = p.rows * p.columns;
  const int64_t chunks = (p.places + kPlaceChunk - 1) / kPlaceChunk;
  const int64_t live = LiveOf(p.batch, p.batch_rows, *launch.frame) * chunks;
  const ItemRange range = RangeOfPart(live, 1, launch.part, launch.parts);
  int64_t offsets[kCorners][kPlaceChunk];
  float weights[kCorners][kPlaceChunk];
  for (int64_t unit = range.begin; unit < range.end; ++unit) {
    const int64_t element = unit / chunks, first = unit % chunks * kPlaceChunk;
    const int64_t count = std::min(kPlaceChunk, p.places - first);
    const float* places = grid + (element * p.places + first) * 2;
    for (int64_t i = 0; i < count; ++i) {
      const Neighbours column = NeighboursOf(p, places[2 * i], p.columns);
      const Neighbours row = NeighboursOf(p, places[2 * i + 1], p.rows);
      for (int64_t corner = 0; corner < kCorners; ++corner) {
        offsets[corner][i] = row.at[corner / 2] * p.columns + column.at[corner % 2];
        weights[corner][i] = static_cast<float>(row.weight[corner / 2] * column.weight[corner % 2]);
      }
    }
    for (int64_t channel = 0; channel < p.channels; ++channel) {
      const float* from = x + (element * p.channels + channel) * plane;
      float* to = y + (element * p.channels + channel) * p.places + first;
      for (int64_t i = 0; i < count; ++i) {
        float sum = 0;
        for (int64_t corner = 0; corner < kCorners; ++corner) {
          // A value without weight counts as zero, even where it is infinite.
          const float weight = weights[corner][i], value = from[offsets[corner][i]];
          sum += weight == 0 ? 0 : weight * value;
        }
        to[i] = sum;
      }
    }
  }
}

}  // namespace

std::vector<Candidate> PlanGridSample(const CpuTarget& target, const NodeView& node) {
  const std::string mode = node.attributes().String("mode", "linear");
  const std::string outside = node.attributes().String("padding_mode", "zeros");
  if (!node.AllOf(DType::kFloat32) || node.rank(0) != 4 ||
      (mode != "linear" && mode != "bilinear") || (outside != "zeros" && outside != "border")) {
    return {};
  }
  const Shape& shape = node.shape(0);
  const Shape& out = node.out_shape();
  GridSampleParams params = {.batch = shape[0],
                             .channels = shape[1],
                             .places = out[2] * out[3],
                             .rows = shape[2],
                             .columns = shape[3],
                             .border = outside == "border",
                             .align_corners = node.attributes().Int("align_corners", 0) != 0,
                             .batch_rows = node.batch_rows()};
  if (NumElements(shape) == 0 || NumElements(out) == 0) return {};
  Candidate candidate = MakeCandidate(target, node, "grid_sample", RunGridSample, params,
                                      2.0 * kCorners * static_cast<double>(NumElements(out)));
  candidate.option.takes_live_rows = params.batch_rows > 0;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
