// Grouping: which of the waiting requests go into one replay, by the cost of replays.
//
// Requests that share a replay are padded to the largest of them along every axis; each replay has
// an overhead. The grouping that costs least in all is searched among the groupings whose groups
// are neighbours in order of size (the best of all for requests of equal rows along one axis), and
// compared with first fit under the same limits: it is never worse than that.
//
// Time alone would let short requests share replays at any padding, where a replay costs about the
// same at any fill. Padding is promised to be little, so a limit holds for the padding of a replay
// beyond the buckets of its requests.
//
// Numbers only. Threads: free functions of their arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "runtime/bucket/cost_model.h"
#include "runtime/bucket/size_measure.h"

namespace reprise {

struct WaitingRequest {
  std::vector<int64_t> sizes;  // bucketed, by axis, without the batch
  int64_t rows = 1;
};

struct GroupingLimits {
  // The most rows of a replay with these sizes (bucketed).
  std::function<int64_t(absl::Span<const int64_t> sizes)> most_rows;
  SizeMeasure measure;  // elements over the axes of WaitingRequest::sizes
  // The most padding that sharing may add: its share of the elements that the replay computes.
  double most_padding = 1;
};

// Requests of different buckets share a replay up to this much padding: with the padding of the
// buckets themselves it stays within 5% of the least.
inline constexpr double kMostSharedPadding = 1.0 / 32;

// Returns whether a replay of `computed` elements may serve requests that alone compute `alone` in
// all.
inline bool PadsLittle(double alone, double computed, double most_padding) {
  return computed - alone <= most_padding * computed;
}

struct Grouping {
  std::vector<std::vector<size_t>> groups;  // indices, each group ascending
  double ns = 0;                            // expected, of all
};

// Returns the cheapest grouping that is found. A request with more rows than fit is alone.
Grouping GroupByCost(absl::Span<const WaitingRequest> waiting, const ReplayCost& cost,
                     const GroupingLimits& limits);

// Puts each request, in order, into the first group that has room: GroupByCost is never worse.
Grouping FirstFit(absl::Span<const WaitingRequest> waiting, const ReplayCost& cost,
                  const GroupingLimits& limits);

}  // namespace reprise
