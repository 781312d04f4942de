#include "runtime/memory/planner.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "runtime/base/aligned_buffer.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

bool LiveTogether(const BufferRequest& a, const BufferRequest& b) {
  return a.first <= b.last && b.first <= a.last;
}

// Returns the offset of the smallest gap that holds `request` between the buffers of `placed`
// (ascending offsets) that are live together with it; after all of them when there is none.
size_t BestFit(const BufferRequest& request, absl::Span<const BufferRequest> requests,
               const std::vector<size_t>& placed, const std::vector<size_t>& offsets) {
  const size_t bytes = AlignUp(request.bytes);
  size_t end = 0;  // the top of the taken bytes so far, walking up
  size_t best = 0;
  size_t best_gap = std::numeric_limits<size_t>::max();
  for (size_t other : placed) {
    if (!LiveTogether(request, requests[other])) continue;
    if (offsets[other] > end) {
      const size_t gap = offsets[other] - end;
      if (gap >= bytes && gap < best_gap) {
        best = end;
        best_gap = gap;
      }
    }
    end = std::max(end, offsets[other] + AlignUp(requests[other].bytes));
  }
  return best_gap == std::numeric_limits<size_t>::max() ? end : best;
}

}  // namespace

MemoryPlan PlanMemory(absl::Span<const BufferRequest> requests) {
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (requests[a].bytes != requests[b].bytes) return requests[a].bytes > requests[b].bytes;
    return requests[a].last - requests[a].first > requests[b].last - requests[b].first;
  });

  MemoryPlan plan;
  plan.offsets.assign(requests.size(), 0);
  std::vector<size_t> placed;  // indices, ascending by offset
  for (size_t index : order) {
    const BufferRequest& request = requests[index];
    REPRISE_CHECK(request.first <= request.last);
    if (request.bytes == 0) continue;
    const size_t offset = BestFit(request, requests, placed, plan.offsets);
    plan.offsets[index] = offset;
    plan.bytes = std::max(plan.bytes, offset + AlignUp(request.bytes));
    placed.insert(std::upper_bound(placed.begin(), placed.end(), offset,
                                   [&](size_t value, size_t i) { return value < plan.offsets[i]; }),
                  index);
  }
  return plan;
}

size_t MemoryLowerBound(absl::Span<const BufferRequest> requests) {
  // The most is live at some buffer's first launch.
  size_t bound = 0;
  for (const BufferRequest& at : requests) {
    size_t live = 0;
    for (const BufferRequest& other : requests) {
      if (other.first <= at.first && at.first <= other.last) live += AlignUp(other.bytes);
    }
    bound = std::max(bound, live);
  }
  return bound;
}

}  // namespace reprise
