#include "runtime/verify/prober_lanes.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "runtime/base/parallel_for.h"
#include "runtime/base/status_macros.h"

namespace reprise {

absl::Status ProberLanes::ForEach(
    size_t count, const std::function<absl::Status(size_t, const PaddingProber&)>& work) {
  const auto cores = static_cast<size_t>(runners_.threads());
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
  Lane lane;
  if (use_ == Use::kRun) {
    ASSIGN_OR_RETURN(lane.runner, runners_.NewRunner());
  }
  lane.prober = std::make_unique<PaddingProber>(subject_, graph_, readings_, lane.runner.get());
  lanes_.push_back(std::move(lane));
  return absl::OkStatus();
}

}  // namespace reprise
