// Ops by which each segment of packed tokens picks some: its argmax, or its tokens at given places.
#include <cstring>

#include "runtime/device/cpu/movement/indices.h"
#include "runtime/device/cpu/packed/packed_plans.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/ops/attention/segment.h"
#include "runtime/ops/attention/segment_op.h"
#include "runtime/ops/kit/typed.h"
#include "runtime/ops/reduce/reduce.h"

namespace reprise::cpu {
namespace {

using ops::SegmentAt;
using ops::SegmentRange;

struct PlaceParams {
  int64_t tokens = 0, segments = 0, row = 0;
  bool largest = true, last = false;
};

template <class T>
void RunPlace(const LaunchArgs& launch) {
  const auto& p = *static_cast<const PlaceParams*>(launch.params);
  const auto* x = static_cast<const T*>(launch.operands[0]);
  const auto* segments = static_cast<const int32_t*>(launch.operands[1]);
  auto* y = static_cast<int64_t*>(launch.operands[2]);
  const ItemRange range = RangeOfPart(p.segments, 1, launch.part, launch.parts);
  for (int64_t s = range.begin; s < range.end; ++s) {
    const SegmentRange segment = SegmentAt(segments, s, p.tokens);
    const T* from = x + segment.begin * p.row;
    for (int64_t i = 0; i < p.row; ++i) {
      y[s * p.row + i] = ops::PlaceOfBest(from + i, segment.size(), p.row, p.largest, p.last);
    }
  }
}

struct PickParams {
  int64_t tokens = 0, segments = 0;
  int64_t picks = 0;  // picks of each segment
  size_t row_bytes = 0;
};

void RunPick(const LaunchArgs& launch) {
  const auto& p = *static_cast<const PickParams*>(launch.params);
  const auto* from = static_cast<const std::byte*>(launch.operands[0]);
  const Indices places = {launch.operands[1], /*wide=*/true};
  const auto* segments = static_cast<const int32_t*>(launch.operands[2]);
  auto* to = static_cast<std::byte*>(launch.operands[3]);
  const ItemRange range = RangeOfPart(p.segments, 1, launch.part, launch.parts);
  for (int64_t s = range.begin; s < range.end; ++s) {
    const SegmentRange segment = SegmentAt(segments, s, p.tokens);
    for (int64_t i = s * p.picks; i < (s + 1) * p.picks; ++i) {
      if (segment.size() == 0) {
        std::memset(to + i * p.row_bytes, 0, p.row_bytes);
        continue;
      }
      const int64_t place = CheckedIndex(launch, 1, places, i, segment.size());
      std::memcpy(to + i * p.row_bytes, from + (segment.begin + place) * p.row_bytes, p.row_bytes);
    }
  }
}

}  // namespace

std::vector<Candidate> PlanSegmentPlace(const CpuTarget& target, const NodeView& node) {
  const PlaceParams params = {node.shape(0)[0], node.shape(1)[0] - 1, RowElements(node.shape(0)),
                              SegmentPlaceOp::From(node.attributes()).largest,
                              SegmentPlaceOp::From(node.attributes()).select_last_index};
  KernelFn run = nullptr;
  (void)ops::Dispatch(ops::TypeList<float, int32_t, int64_t>{}, node.dtype(0),
                      [&]<typename T>() { run = RunPlace<T>; });
  if (run == nullptr) return {};
  Candidate candidate = MakeCandidate(target, node, "segment_place", run, params,
                                      static_cast<double>(params.tokens * params.row));
  candidate.option.takes_live_rows = true;
  return {std::move(candidate)};
}

std::vector<Candidate> PlanSegmentPick(const CpuTarget& target, const NodeView& node) {
  const PickParams params = {node.shape(0)[0], node.shape(2)[0] - 1, RowElements(node.shape(1)),
                             RowElements(node.shape(0)) * DTypeSize(node.dtype(0))};
  Candidate candidate = MakeCandidate(target, node, "segment_pick", RunPick, params, 0);
  // The tokens are not read as a whole.
  LaunchWork& work = candidate.bound.work;
  work.bytes = 2.0 * static_cast<double>(params.segments * params.picks) *
               static_cast<double>(params.row_bytes);
  candidate.option.estimate_ns = work.bytes / 10;
  candidate.option.takes_live_rows = true;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
