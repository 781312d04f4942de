#include "server/requests/part.h"

#include "runtime/batching/scheduler-inl.h"
#include "server/requests/call.h"
#include "server/requests/plan_builder.h"

namespace reprise {

template class ModelQueue<Part>;
template class Scheduler<Part>;

void Part::Drop(const absl::Status& why) {
  gone_.Stop();
  Answer(Response{.status = why}, {});
}

void Part::Finish(Response response, const PhaseTimes& times) {
  Answer(std::move(response), times);
}

void Part::Answer(Response response, const PhaseTimes& times) {
  if (answered_.exchange(true)) return;
  call_->FinishPart(index_, {.response = std::move(response), .times = times});
}

}  // namespace reprise
