// reprise.DeformColumns by linear sampling of planes: the positions and weights of the
// neighbours of a tap are found once for the channels that share offsets.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "runtime/device/cpu/resize/resize_plans.h"
#include "runtime/ops/windows/conv_op.h"
#include "runtime/ops/windows/deform_conv.h"

namespace reprise::cpu {
namespace {

constexpr int64_t kMostTaps = 64;
constexpr int64_t kWindowChunk = 16;  // windows that a part takes at a time

struct DeformParams {
  ops::DeformWindows deform;
  int64_t batch = 0, channels = 0, rows = 0, columns = 0;
  int64_t batch_rows = 0;
  bool has_mask = false;
};

// The neighbours of one tap: elements of a plane, and weights.
struct Tap {
  std::array<int32_t, kCorners> at = {};
  std::array<float, kCorners> weight = {};
};

Tap TapAt(const DeformParams& p, double row, double column, double factor) {
  Tap tap;
  const auto rows = static_cast<double>(p.rows), columns = static_cast<double>(p.columns);
  // Neither far away nor no number.
  if (!(row > -1 && row < rows && column > -1 && column < columns)) return tap;
  const double top = std::floor(row), left = std::floor(column);
  const double down = row - top, right = column - left;
  for (int64_t corner = 0; corner < kCorners; ++corner) {
    const bool lower = corner / 2 != 0, later = corner % 2 != 0;
    const double r = top + (lower ? 1 : 0), c = left + (later ? 1 : 0);
    if (r < 0 || r >= rows || c < 0 || c >= columns) continue;
    tap.at[corner] = static_cast<int32_t>(r * columns + c);
    tap.weight[corner] =
        static_cast<float>((lower ? down : 1 - down) * (later ? right : 1 - right) * factor);
  }
  return tap;
}

void RunDeformColumns(const LaunchArgs& launch) {
  const auto& p = *static_cast<const DeformParams*>(launch.params);
  const ops::Windows& w = p.deform.windows;
  const auto* x = static_cast<const float*>(launch.operands[0]);
  const auto* offset = static_cast<const float*>(launch.operands[1]);
  const auto* mask = p.has_mask ? static_cast<const float*>(launch.operands[2]) : nullptr;
  auto* y = static_cast<float*>(launch.operands[p.has_mask ? 3 : 2]);
  const int64_t windows = w.out[0] * w.out[1], plane = p.rows * p.columns;
  const int64_t taps = p.deform.taps, groups = p.deform.groups, shared = p.channels / groups;
  const int64_t chunks = (windows + kWindowChunk - 1) / kWindowChunk;
  const ItemRange range = RangeOfPart(LiveOf(p.batch, p.batch_rows, *launch.frame) * chunks, 1,
                                      launch.part, launch.parts);
  std::array<Tap, kMostTaps> reads;
  for (int64_t unit = range.begin; unit < range.end; ++unit) {
    const int64_t row = unit / chunks, first = unit % chunks * kWindowChunk;
    for (int64_t window = first; window < std::min(first + kWindowChunk, windows); ++window) {
      for (int64_t group = 0; group < groups; ++group) {
        for (int64_t tap = 0; tap < taps; ++tap) {
          const int64_t of = (row * groups + group) * taps + tap;
          const int64_t top = window / w.out[1] * w.strides[0] - w.pad_begin[0] +
                              tap / w.kernel[1] * w.dilations[0];
          const int64_t left = window % w.out[1] * w.strides[1] - w.pad_begin[1] +
                               tap % w.kernel[1] * w.dilations[1];
          reads[tap] = TapAt(p, static_cast<double>(top) + offset[2 * of * windows + window],
                             static_cast<double>(left) + offset[(2 * of + 1) * windows + window],
                             mask == nullptr ? 1 : mask[of * windows + window]);
        }
        float* to = y + ((row * windows + window) * p.channels + group * shared) * taps;
        const float* from = x + (row * p.channels + group * shared) * plane;
        for (int64_t channel = 0; channel < shared; ++channel, from += plane) {
          for (int64_t tap = 0; tap < taps; ++tap) {
            float sum = 0;
            for (int64_t corner = 0; corner < kCorners; ++corner) {
              // An element without a weight counts as zero, even where it is infinite.
              const float weight = reads[tap].weight[corner];
              sum += weight == 0 ? 0 : weight * from[reads[tap].at[corner]];
            }
            *to++ = sum;
          }
        }
      }
    }
  }
}

}  // namespace

std::vector<Candidate> PlanDeformColumns(const CpuTarget& target, const NodeView& node) {
  using Op = DeformColumnsOp;
  if (!node.AllOf(DType::kFloat32) || node.rank(Op::kX) != 4) return {};
  const Shape &x = node.shape(Op::kX), &out = node.out_shape();
  if (NumElements(x) == 0 || NumElements(out) == 0 ||
      x[2] * x[3] > std::numeric_limits<int32_t>::max()) {
    return {};
  }
  const bool has_mask = node.has_input(Op::kMask);
  absl::StatusOr<ops::DeformWindows> deform =
      ops::DeformWindowsOf(node.node(), x, node.attributes().Ints("kernel_shape"),
                           node.shape(Op::kOffset), has_mask ? &node.shape(Op::kMask) : nullptr);
  if (!deform.ok() || deform->taps > kMostTaps) return {};
  DeformParams params = {.deform = *std::move(deform),
                         .batch = x[0],
                         .channels = x[1],
                         .rows = x[2],
                         .columns = x[3],
                         .batch_rows = WholeBatchRows(node, x[0]),
                         .has_mask = has_mask};
  const bool takes_live_rows = params.batch_rows > 0;
  Candidate candidate =
      MakeCandidate(target, node, "deform_columns", RunDeformColumns, std::move(params),
                    2.0 * kCorners * static_cast<double>(NumElements(out)));
  candidate.option.takes_live_rows = takes_live_rows;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
