// Resize of the last two dims. Each row of the operand that is needed is sampled at the columns of
// the result once, and stays in the cache until no row of the result is made of it any more.
#include <limits>

#include "runtime/device/cpu/plan.h"
#include "runtime/device/cpu/resample.h"
#include "runtime/ops/resize.h"

namespace reprise::cpu {
namespace {

// Rows that are sampled and kept: as many as a row of the result is made of at most, which are
// neighbours.
constexpr int64_t kKept = 4;
// The widest vector.
constexpr int64_t kVectorFloats = 16;

struct ResizeParams {
  const ResampleKernels* kernels = nullptr;
  int64_t planes = 0, batch_rows = 0;
  int64_t in_rows = 0, in_columns = 0, out_rows = 0, out_columns = 0;
  // Of each row of the result.
  int row_taps = 1;
  std::vector<int64_t> row_places;  // [out_rows, row_taps]
  std::vector<float> row_weights;
  ResampledColumns columns;  // no taps: they stay as they are
  int operand_out = 0, workspace = 0;
  int scratch_parts = 0;

  int64_t ScratchFloats() const { return kKept * columns.stride; }
};

void RunResize(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ResizeParams*>(launch.params);
  const int parts = PartsWithScratch(launch, p.scratch_parts);
  if (launch.part >= parts) return;
  const int64_t rows = LiveOf(p.planes, p.batch_rows, *launch.frame) * p.out_rows;
  const auto* x = static_cast<const float*>(launch.operands[0]);
  auto* out = static_cast<float*>(launch.operands[p.operand_out]);
  float* const kept = p.columns.taps == 0 ? nullptr
                                          : static_cast<float*>(launch.operands[p.workspace]) +
                                                launch.part * p.ScratchFloats();
  int64_t holds[kKept] = {-1, -1, -1, -1};  // rows of the operand, counted through its planes
  const ItemRange range = RangeOfPart(rows, 1, launch.part, parts);
  for (int64_t row = range.begin; row < range.end; ++row) {
    const int64_t in_plane = row / p.out_rows, first_tap = row % p.out_rows * p.row_taps;
    const float* sampled[kKept];
    for (int tap = 0; tap < p.row_taps; ++tap) {
      const int64_t from = in_plane * p.in_rows + p.row_places[first_tap + tap];
      const float* const line = x + from * p.in_columns;
      if (kept == nullptr) {
        sampled[tap] = line;
        continue;
      }
      float* const to = kept + from % kKept * p.columns.stride;
      if (holds[from % kKept] != from) p.kernels->columns(p.columns, line, to);
      holds[from % kKept] = from;
      sampled[tap] = to;
    }
    p.kernels->rows(sampled, p.row_weights.data() + first_tap, p.row_taps, p.out_columns,
                    out + row * p.out_columns);
  }
}

// As many taps for each position; 0: they differ.
int TapsOfEach(const ops::ResizeTaps& taps) {
  for (const auto& of_position : taps) {
    if (of_position.size() != taps[0].size()) return 0;
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
      NumElements(out) == 0 || in.back() > std::numeric_limits<int32_t>::max()) {
    return {};
  }
  const absl::StatusOr<std::vector<ops::ResizeTaps>> taps =
      ops::ResizeTapsOf(node.node(), in, ValuesOf(node, 2), ValuesOf(node, 3));
  if (!taps.ok()) return {};
  for (size_t d = 0; d + 2 < rank; ++d) {
    if (!(*taps)[d].empty()) return {};
  }
  ResizeParams p;
  p.kernels = &ResampleKernelsFor(target.isa);
  p.in_columns = in.back();
  p.out_columns = out.back();
  p.in_rows = rank > 1 ? in[rank - 2] : 1;
  p.out_rows = rank > 1 ? out[rank - 2] : 1;
  p.planes = NumElements(out) / (p.out_rows * p.out_columns);
  if (rank > 2 && in[0] % std::max<int64_t>(node.batch_rows(), 1) == 0) {
    p.batch_rows = node.batch_rows();
  }
  const ops::ResizeTaps& rows = rank > 1 ? (*taps)[rank - 2] : ops::ResizeTaps();
  if (!rows.empty()) p.row_taps = TapsOfEach(rows);
  if (p.row_taps == 0 || p.row_taps > kKept) return {};
  for (int64_t row = 0; row < p.out_rows; ++row) {
    for (int tap = 0; tap < p.row_taps; ++tap) {
      p.row_places.push_back(rows.empty() ? row : rows[row][tap].at);
      p.row_weights.push_back(rows.empty() ? 1 : rows[row][tap].weight);
    }
  }
  const ops::ResizeTaps& columns = taps->back();
  if (!columns.empty()) {
    ResampledColumns& c = p.columns;
    c.taps = TapsOfEach(columns);
    if (c.taps == 0) return {};
    c.in_columns = p.in_columns;
    c.columns = p.out_columns;
    c.stride = (p.out_columns + kVectorFloats - 1) / kVectorFloats * kVectorFloats;
    for (int tap = 0; tap < c.taps; ++tap) {
      for (int64_t i = 0; i < c.stride; ++i) {
        const ops::ResizeTap& of = columns[std::min(i, c.columns - 1)][tap];
        if (i > 0 && of.at < c.places.back()) return {};
        c.places.push_back(static_cast<int32_t>(of.at));
        c.weights.push_back(of.weight);
      }
    }
  }
  p.operand_out = static_cast<int>(node.num_inputs());
  p.workspace = static_cast<int>(node.num_inputs() + node.num_outputs());
  p.scratch_parts = target.scratch_parts;
  const size_t workspace = sizeof(float) * p.ScratchFloats() * p.scratch_parts;
  const double flops = 2.0 * static_cast<double>(NumElements(out)) *
                       static_cast<double>(p.row_taps + p.columns.taps);
  const bool takes_live_rows = p.batch_rows > 0;
  Candidate candidate = MakeCandidate(target, node, "resize", RunResize, std::move(p), flops);
  candidate.option.workspace_bytes = workspace;
  candidate.option.takes_live_rows = takes_live_rows;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
