// Where the rows of a padded batch end (runtime/ops/windows/live.h).
//
// A fill takes over the buffer of its operand wherever that has no other reader, and then
// writes only past the ends: a row that is not padded costs no time.
#include <algorithm>
#include <cstring>

#include "runtime/device/cpu/movement/movement_plans.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/graph/extent.h"
#include "runtime/ops/windows/live.h"
#include "runtime/ops/windows/live_op.h"

namespace reprise::cpu {
namespace {

// A part of a launch fills at least this many floats.
constexpr int64_t kFloatsOfPart = int64_t{1} << 15;

struct FillParams {
  int64_t rows = 0;          // extents
  int64_t lines_of_row = 0;  // lines of [size, inner] in each
  int64_t size = 0, inner = 0;
  int64_t batch_rows = 0;
  float value = 0;
};

void RunFill(const LaunchArgs& launch) {
  const auto& p = *static_cast<const FillParams*>(launch.params);
  const auto* const x = static_cast<const float*>(launch.operands[0]);
  const auto* const extents = static_cast<const int32_t*>(launch.operands[1]);
  auto* const out = static_cast<float*>(launch.operands[2]);
  const int64_t line = p.size * p.inner;
  const int64_t lines = LiveOf(p.rows * p.lines_of_row, p.batch_rows, *launch.frame);
  const int64_t grain = std::max<int64_t>(1, kFloatsOfPart / std::max<int64_t>(1, line));
  const ItemRange range = RangeOfPart(lines, grain, launch.part, launch.parts);
  for (int64_t i = range.begin; i < range.end; ++i) {
    const int64_t live = ops::LivePositions(extents[i / p.lines_of_row], p.size) * p.inner;
    if (out != x && live > 0) {
      std::memcpy(out + i * line, x + i * line, static_cast<size_t>(live) * sizeof(float));
    }
    std::fill(out + i * line + live, out + (i + 1) * line, p.value);
  }
}

struct ExtentParams {
  int64_t rows = 0, size = 0;
  int64_t batch_rows = 0;
  Extent extent;
};

void RunExtent(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ExtentParams*>(launch.params);
  const auto* const live = static_cast<const uint8_t*>(launch.operands[0]);
  const int64_t all = *static_cast<const int64_t*>(launch.operands[1]);
  auto* const out = static_cast<int32_t*>(launch.operands[2]);
  const int64_t rows = LiveOf(p.rows, p.batch_rows, *launch.frame);
  const ItemRange range = RangeOfPart(rows, 1, launch.part, launch.parts);
  for (int64_t row = range.begin; row < range.end; ++row) {
    out[row] = ops::LiveExtentOf(live + row * p.size, p.size, all, p.extent);
  }
}

struct MaskParams {
  int64_t rows = 0, size = 0;
  int64_t batch_rows = 0;
  float value = 0;
  int out = 0;
};

void RunMask(const LaunchArgs& launch) {
  const auto& p = *static_cast<const MaskParams*>(launch.params);
  const auto* const extents = static_cast<const int32_t*>(launch.operands[0]);
  auto* const out = static_cast<float*>(launch.operands[p.out]);
  const int64_t rows = LiveOf(p.rows, p.batch_rows, *launch.frame);
  const ItemRange range = RangeOfPart(rows, 1, launch.part, launch.parts);
  for (int64_t row = range.begin; row < range.end; ++row) {
    float* const line = out + row * p.size;
    const int64_t live = ops::LivePositions(extents[row], p.size);
    std::fill(line, line + live, 0.0F);
    std::fill(line + live, line + p.size, p.value);
  }
}

struct ShareParams {
  int64_t rows = 0, count = 0;
  int64_t batch_rows = 0;
  ops::SharedWindows windows;
};

void RunShare(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ShareParams*>(launch.params);
  const auto* const extents = static_cast<const int32_t*>(launch.operands[0]);
  const int64_t size = *static_cast<const int64_t*>(launch.operands[1]);
  auto* const out = static_cast<float*>(launch.operands[2]);
  const int64_t rows = LiveOf(p.rows, p.batch_rows, *launch.frame);
  const ItemRange range = RangeOfPart(rows, 1, launch.part, launch.parts);
  for (int64_t row = range.begin; row < range.end; ++row) {
    const int64_t live = ops::LivePositions(extents[row], size);
    for (int64_t o = 0; o < p.count; ++o) {
      out[row * p.count + o] = p.windows.Share(o, live, size);
    }
  }
}

struct CompactParams {
  int64_t rows = 0, lines_of_row = 0;
  int64_t line = 0, bytes = 0;  // bytes of a line, and of each of its positions
  int64_t batch_rows = 0;
  int out = 0;
  ops::MergedDims dims;
};

void RunCompact(const LaunchArgs& launch) {
  const auto& p = *static_cast<const CompactParams*>(launch.params);
  const auto* const x = static_cast<const std::byte*>(launch.operands[0]);
  auto* const out = static_cast<std::byte*>(launch.operands[p.out]);
  const int32_t* extents[ops::MergedDims::kMostDims];
  for (int i = LiveCompactOp::kExtents; i < p.out; ++i) {
    extents[i - LiveCompactOp::kExtents] = static_cast<const int32_t*>(launch.operands[i]);
  }
  const int64_t lines = LiveOf(p.rows * p.lines_of_row, p.batch_rows, *launch.frame);
  constexpr int64_t kBytesOfPart = kFloatsOfPart * sizeof(float);
  const int64_t grain = std::max<int64_t>(1, kBytesOfPart / std::max<int64_t>(1, p.line));
  const ItemRange range = RangeOfPart(lines, grain, launch.part, launch.parts);
  for (int64_t i = range.begin; i < range.end; ++i) {
    p.dims.Compact(extents, i / p.lines_of_row, p.bytes, x + i * p.line, out + i * p.line);
  }
}

}  // namespace

std::vector<Candidate> PlanLiveFill(const CpuTarget& target, const NodeView& node) {
  if (node.dtype(0) != DType::kFloat32) return {};
  const Shape& shape = node.shape(0);
  const auto axis = NormalizeAxis(node.attributes().Int("axis", -1), node.rank(0));
  // A line for each of the extents at least: rows lie in front of the axis.
  if (!axis.ok() || *axis == 0 || NumElements(shape) == 0) return {};
  const int64_t inner = Strides(shape)[*axis];
  const int64_t rows = node.shape(1)[0];
  const int64_t batch_rows = node.batch_rows();
  const FillParams params = {.rows = rows,
                             .lines_of_row = NumElements(shape) / (shape[*axis] * inner) / rows,
                             .size = shape[*axis],
                             .inner = inner,
                             .batch_rows = batch_rows,
                             .value = node.attributes().Float("value", 0)};
  Candidate candidate = MakeCandidate(target, node, "live_fill", RunFill, params, 0);
  candidate.option.in_place = 0;
  candidate.option.takes_live_rows =
      batch_rows > 0 && params.rows * params.lines_of_row % batch_rows == 0;
  return {std::move(candidate)};
}

std::vector<Candidate> PlanLiveExtent(const CpuTarget& target, const NodeView& node) {
  const int64_t batch_rows = node.batch_rows();
  const ExtentParams params = {.rows = node.shape(0)[0],
                               .size = node.shape(0)[1],
                               .batch_rows = batch_rows,
                               .extent = {.offset = node.attributes().Int("offset", 0),
                                          .stride = node.attributes().Int("stride", 1)}};
  Candidate candidate = MakeCandidate(target, node, "live_extent", RunExtent, params, 0);
  candidate.option.takes_live_rows = batch_rows > 0 && params.rows % batch_rows == 0;
  return {std::move(candidate)};
}

std::vector<Candidate> PlanLiveMask(const CpuTarget& target, const NodeView& node) {
  const int64_t batch_rows = node.batch_rows();
  const MaskParams params = {.rows = node.shape(0)[0],
                             .size = node.out_shape().back(),
                             .batch_rows = batch_rows,
                             .value = node.attributes().Float("value", 0),
                             .out = static_cast<int>(node.num_inputs())};
  Candidate candidate = MakeCandidate(target, node, "live_mask", RunMask, params, 0);
  candidate.option.takes_live_rows = batch_rows > 0 && params.rows % batch_rows == 0;
  return {std::move(candidate)};
}

std::vector<Candidate> PlanLiveShare(const CpuTarget& target, const NodeView& node) {
  const int64_t batch_rows = node.batch_rows();
  const ShareParams params = {
      .rows = node.shape(0)[0],
      .count = NumElements(node.out_shape()) / std::max<int64_t>(1, node.shape(0)[0]),
      .batch_rows = batch_rows,
      .windows = ops::SharedWindows::Of(node.node())};
  Candidate candidate = MakeCandidate(target, node, "live_share", RunShare, params, 0);
  candidate.option.takes_live_rows = batch_rows > 0 && params.rows % batch_rows == 0;
  return {std::move(candidate)};
}

std::vector<Candidate> PlanLiveCompact(const CpuTarget& target, const NodeView& node) {
  const Shape& shape = node.shape(0);
  const auto axis = NormalizeAxis(node.attributes().Int("axis", -1), node.rank(0));
  const Tensor* given = node.constant(LiveCompactOp::kSizes);
  const size_t extents = node.num_inputs() - LiveCompactOp::kExtents;
  if (!axis.ok() || *axis == 0 || given == nullptr || NumElements(shape) == 0 ||
      extents > ops::MergedDims::kMostDims) {
    return {};
  }
  const auto sizes = given->ToInt64s();
  if (!sizes.ok()) return {};
  const auto dims = ops::MergedDims::Of(node.node(), *sizes);
  if (!dims.ok()) return {};
  const int64_t bytes = Strides(shape)[*axis] * static_cast<int64_t>(DTypeSize(node.dtype(0)));
  const int64_t rows = node.shape(LiveCompactOp::kExtents)[0];
  const int64_t batch_rows = node.batch_rows();
  const int64_t lines = NumElements(shape) / (Strides(shape)[*axis] * shape[*axis]);
  const CompactParams params = {.rows = rows,
                                .lines_of_row = lines / rows,
                                .line = bytes * shape[*axis],
                                .bytes = bytes,
                                .batch_rows = batch_rows,
                                .out = static_cast<int>(node.num_inputs()),
                                .dims = *dims};
  Candidate candidate = MakeCandidate(target, node, "live_compact", RunCompact, params, 0);
  candidate.option.takes_live_rows = batch_rows > 0 && lines % batch_rows == 0;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
