#include "runtime/engine/load/prober_lanes.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/engine/replay/parallel_for.h"

namespace reprise {

absl::Status ProberLanes::ForEach(
    size_t count, const std::function<absl::Status(size_t, const PaddingProber&)>& work) {
  const size_t cores = context_.cores == nullptr ? 1 : context_.cores->cores();
  const size_t lanes = std::max<size_t>(std::min(count, cores), 1);
  while (lanes_.size() < lanes) RETURN_IF_ERROR(AddLane());
  std::vector<absl::Status> results(count);
  std::atomic<size_t> next{0};
  ParallelFor(static_cast<int>(lanes), [&](int lane) {
    for (size_t i; (i = next++) < count;) results[i] = work(i, *lanes_[lane].prober);
  });
  for (const absl::Status& result : results) RETURN_IF_ERROR(result);
  return absl::OkStatus();
}

absl::Status ProberLanes::AddLane() {
  // One thread: the lanes run side by side, and a core that one borrows another has to wait for.
  ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream, Stream::Create({.cores = context_.cores}));
  auto prober =
      std::make_unique<PaddingProber>(model_, graph_, context_, sampler_, *stream, recipes_);
  lanes_.push_back({std::move(stream), std::move(prober)});
  return absl::OkStatus();
}

}  // namespace reprise
