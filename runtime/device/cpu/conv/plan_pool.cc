// MaxPool and AveragePool over one or two dims. See depthwise_nchw.h, and window_tiles.h for
// windows of other forms.
#include <limits>

#include "runtime/device/cpu/conv/conv_plans.h"
#include "runtime/device/cpu/conv/depthwise_nchw.h"
#include "runtime/device/cpu/conv/window_tiles.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/ops/windows/pool_op.h"

namespace reprise::cpu {
namespace {

// The limit on the elements of a window, each of which takes an entry in the plan.
constexpr int64_t kMostPoolTaps = 1 << 16;

struct PoolParams {
  const StripKernels* kernels = nullptr;
  // Both null: the elements of a strip's windows are copied.
  PlaneLargest largest_in_place = nullptr;
  PlaneAverage average_in_place = nullptr;
  Strips strips;
  int64_t batch = 0, batch_rows = 0, channels = 0;
  // For an average: the sums are divided by the product of the counts of their row and column of
  // windows. Both are empty for max pooling.
  std::vector<float> row_counts, column_counts;
  int workspace = 0;
  int scratch_parts = 0;

  bool in_place() const { return largest_in_place != nullptr || average_in_place != nullptr; }
};

void RunPool(const LaunchArgs& launch) {
  const auto& p = *static_cast<const PoolParams*>(launch.params);
  const Strips& s = p.strips;
  const int64_t per_plane = s.per_plane();
  const int64_t units = LiveOf(p.batch, p.batch_rows, *launch.frame) * p.channels * per_plane;
  const bool in_place = p.in_place();
  const int parts = in_place ? launch.parts : PartsWithScratch(launch, p.scratch_parts);
  if (launch.part >= parts) return;
  const auto* x = static_cast<const float*>(launch.operands[0]);
  auto* out = static_cast<float*>(launch.operands[1]);
  float* const copied =
      in_place ? nullptr
               : static_cast<float*>(launch.operands[p.workspace]) + launch.part * s.CopyFloats();
  const bool average = !p.row_counts.empty();
  const float padding = average ? 0 : -std::numeric_limits<float>::infinity();
  const ItemRange range = RangeOfPart(units, 1, launch.part, parts);
  for (int64_t unit = range.begin; unit < range.end; ++unit) {
    const Strip strip = StripOf(s, unit % per_plane);
    const int64_t plane = unit / per_plane;
    float* const y = out + plane * s.out.rows * s.out.columns;
    const float* const from = x + plane * s.in.rows * s.in.columns;
    const PlaneRows rows = {strip.first.rows, strip.first.rows + strip.size.rows};
    if (p.largest_in_place != nullptr) {
      p.largest_in_place(s, rows, from, y);
      continue;
    }
    if (p.average_in_place != nullptr) {
      p.average_in_place(s, rows, from, p.row_counts.data(), p.column_counts.data(), y);
      continue;
    }
    p.kernels->copy(s, strip, from, padding, copied);
    if (average) {
      p.kernels->average(s, strip, copied, p.row_counts.data(), p.column_counts.data(), y);
    } else {
      p.kernels->largest(s, strip, copied, y);
    }
  }
}

// Returns the number of taps that count for each window along dim `d`; at least one: empty sums are
// zero.
std::vector<float> CountsAlong(const ops::Windows& w, const Shape& spatial, size_t d,
                               bool with_padding) {
  std::vector<float> counts;
  for (int64_t window = 0; window < w.out[d]; ++window) {
    int64_t count = 0;
    for (int64_t k = 0; k < w.kernel[d]; ++k) {
      const int64_t at = window * w.strides[d] - w.pad_begin[d] + k * w.dilations[d];
      const bool inside = at >= 0 && at < spatial[d];
      if (inside || (with_padding && at < spatial[d] + w.pad_end[d])) ++count;
    }
    counts.push_back(static_cast<float>(std::max<int64_t>(count, 1)));
  }
  return counts;
}

}  // namespace

std::vector<Candidate> PlanPool(const CpuTarget& target, const NodeView& node) {
  if (!node.AllOf(DType::kFloat32) || node.rank(0) > static_cast<int64_t>(Strips::kMaxDims) + 2 ||
      !node.has_output(0)) {
    return {};
  }
  const Shape& x = node.shape(0);
  absl::StatusOr<ops::Windows> windows = ops::WindowsOf(node.node(), x);
  if (!windows.ok() || NumElements(node.out_shape()) == 0 || NumElements(x) == 0) return {};
  if (NumElements(windows->kernel) > kMostPoolTaps) return {};
  Shape spatial(x.begin() + 2, x.end());
  LayColumnsDown(*windows, spatial);
  PoolParams p;
  p.kernels = &StripKernelsFor(target.isa);
  p.batch = x[0];
  p.batch_rows = WholeBatchRows(node, p.batch);
  p.channels = x[1];
  const int64_t planes = p.batch * p.channels;
  p.strips = PlanStrips(*windows, spatial, planes, target.scratch_parts);
  const bool average = node.op() == AveragePoolOp::kName;
  const PlaneKernels& in_place = PlaneKernelsFor(target.isa);
  if (average) {
    p.average_in_place = in_place.average(p.strips);
  } else {
    p.largest_in_place = in_place.largest(p.strips);
  }
  if (p.in_place()) {
    p.strips.SetStrip(WholeRows(p.strips, planes, target.scratch_parts));
  } else if (p.strips.CopyFloats() > Strips::kMaxCopy) {
    return {};
  }
  if (average) {
    const bool with_padding = node.attributes().Int("count_include_pad", 0) != 0;
    const size_t last = spatial.size() - 1;
    p.row_counts =
        last == 0 ? std::vector<float>{1} : CountsAlong(*windows, spatial, 0, with_padding);
    p.column_counts = CountsAlong(*windows, spatial, last, with_padding);
    p.column_counts.resize(p.column_counts.size() + kVectorFloats, 1);
  }
  p.workspace = static_cast<int>(node.num_inputs() + node.num_outputs());
  p.scratch_parts = target.scratch_parts;
  const size_t workspace =
      p.in_place() ? 0 : sizeof(float) * p.strips.CopyFloats() * p.scratch_parts;
  const double flops =
      static_cast<double>(NumElements(node.out_shape())) * static_cast<double>(p.strips.num_taps());
  const bool takes_live_rows = p.batch_rows > 0;
  Candidate candidate = MakeCandidate(target, node, "pool", RunPool, std::move(p), flops);
  candidate.option.workspace_bytes = workspace;
  candidate.option.takes_live_rows = takes_live_rows;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
