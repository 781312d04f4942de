// Resize of the last two dims.
#include <limits>
#include <set>

#include "runtime/device/cpu/plan/plan.h"
#include "runtime/device/cpu/resize/resample.h"
#include "runtime/device/cpu/resize/resize_plans.h"
#include "runtime/ops/windows/resize.h"

namespace reprise::cpu {
namespace {

struct ResizeParams {
  const ResampleKernels* kernels = nullptr;
  int64_t planes = 0, batch_rows = 0;
  Resampling resampling;
  int operand_out = 0, workspace = 0;
  int scratch_parts = 0;
};

void RunResize(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ResizeParams*>(launch.params);
  const int64_t scratch_floats = p.resampling.ScratchFloats();
  const int parts = scratch_floats == 0 ? launch.parts : PartsWithScratch(launch, p.scratch_parts);
  if (launch.part >= parts) return;
  const int64_t rows = LiveOf(p.planes, p.batch_rows, *launch.frame) * p.resampling.out_rows;
  float* const scratch = scratch_floats == 0 ? nullptr
                                             : static_cast<float*>(launch.operands[p.workspace]) +
                                                   launch.part * scratch_floats;
  const ItemRange range = RangeOfPart(rows, 1, launch.part, parts);
  p.kernels->rows(p.resampling, range.begin, range.end,
                  static_cast<const float*>(launch.operands[0]), scratch,
                  static_cast<float*>(launch.operands[p.operand_out]));
}

// Returns whether sampling the sum of rows costs less than the sum of sampled rows. A sampled
// value costs about as much as kSample summed ones.
bool RowsFirst(const Resampling& of) {
  constexpr double kSample = 3;
  const double sample = kSample * of.columns.taps * static_cast<double>(of.columns.columns);
  const auto sums_of = [&](int64_t columns) {
    return static_cast<double>(of.row_taps * of.out_rows * columns);
  };
  const std::set<int32_t> needed(of.row_places.begin(), of.row_places.end());
  return static_cast<double>(of.out_rows) * sample + sums_of(of.columns.in_columns) <
         static_cast<double>(needed.size()) * sample + sums_of(of.columns.columns);
}

// Returns the number of taps of each position; 0: they differ.
int TapsOfEach(const ops::ResizeTaps& taps) {
  for (size_t i = 1; i < taps.size(); ++i) {
    if (taps[i].size() != taps[0].size()) return 0;
  }
  return static_cast<int>(taps[0].size());
}

std::vector<double> ValuesOf(const NodeView& node, size_t input) {
  const Tensor* values = node.has_input(input) ? node.constant(input) : nullptr;
  if (values == nullptr) return {};
  absl::StatusOr<std::vector<double>> doubles = values->ToDoubles();
  return doubles.ok() ? *std::move(doubles) : std::vector<double>();
}

}  // namespace

std::vector<Candidate> PlanResize(const CpuTarget& target, const NodeView& node) {
  const Shape &in = node.shape(0), &out = node.out_shape();
  const size_t rank = in.size();
  if (node.dtype(0) != DType::kFloat32 || rank == 0 || NumElements(in) == 0 ||
      NumElements(out) == 0 ||
      std::max(in.back(), rank > 1 ? in[rank - 2] : 0) > std::numeric_limits<int32_t>::max()) {
    return {};
  }
  const auto taps = ops::ResizeTapsOf(node.node(), in, ValuesOf(node, 2), ValuesOf(node, 3));
  if (!taps.ok()) return {};
  for (size_t d = 0; d + 2 < rank; ++d) {
    if (!(*taps)[d].empty()) return {};
  }
  ResizeParams p;
  p.kernels = &ResampleKernelsFor(target.isa);
  Resampling& r = p.resampling;
  r.in_rows = rank > 1 ? in[rank - 2] : 1;
  r.out_rows = rank > 1 ? out[rank - 2] : 1;
  p.planes = NumElements(out) / (r.out_rows * out.back());
  if (rank > 2 && in[0] % std::max<int64_t>(node.batch_rows(), 1) == 0) {
    p.batch_rows = node.batch_rows();
  }
  const ops::ResizeTaps& rows = rank > 1 ? (*taps)[rank - 2] : ops::ResizeTaps();
  if (!rows.empty()) r.row_taps = TapsOfEach(rows);
  if (r.row_taps == 0 || r.row_taps > Resampling::kMaxRowTaps) return {};
  for (int64_t row = 0; row < r.out_rows; ++row) {
    for (int tap = 0; tap < r.row_taps; ++tap) {
      r.row_places.push_back(static_cast<int32_t>(rows.empty() ? row : rows[row][tap].at));
      r.row_weights.push_back(rows.empty() ? 1 : rows[row][tap].weight);
    }
  }
  ResampledColumns& c = r.columns;
  c.in_columns = in.back();
  c.columns = out.back();
  const ops::ResizeTaps& columns = taps->back();
  if (!columns.empty()) {
    c.taps = TapsOfEach(columns);
    if (c.taps == 0) return {};
    c.stride = Resampling::WholeVectors(c.columns);
    for (int tap = 0; tap < c.taps; ++tap) {
      for (int64_t i = 0; i < c.stride; ++i) {
        const ops::ResizeTap& of = columns[std::min(i, c.columns - 1)][tap];
        if (i > 0 && of.at < c.places.back()) return {};
        c.places.push_back(static_cast<int32_t>(of.at));
        c.weights.push_back(of.weight);
      }
    }
    r.rows_first = r.row_taps > Resampling::kKeptRows || RowsFirst(r);
  }
  p.operand_out = static_cast<int>(node.num_inputs());
  p.workspace = static_cast<int>(node.num_inputs() + node.num_outputs());
  p.scratch_parts = target.scratch_parts;
  const size_t workspace = sizeof(float) * r.ScratchFloats() * p.scratch_parts;
  const double flops =
      2.0 * static_cast<double>(NumElements(out)) * static_cast<double>(r.row_taps + c.taps);
  const bool takes_live_rows = p.batch_rows > 0;
  Candidate candidate = MakeCandidate(target, node, "resize", RunResize, std::move(p), flops);
  candidate.option.workspace_bytes = workspace;
  candidate.option.takes_live_rows = takes_live_rows;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
