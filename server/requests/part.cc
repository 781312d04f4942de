#include "server/requests/part.h"

#include "runtime/batching/scheduler-inl.h"
#include "server/requests/call.h"
#include "server/requests/plan_builder.h"

namespace reprise {

template class ModelQueue<Part>;
template class Scheduler<Part>;

void Part::Drop(const absl::Status& why) { Finish(Response{.status = why}, {}); }

void Part::Finish(Response response, const PhaseTimes& times) {
  call_->FinishPart(index_, {.response = std::move(response), .times = times});
}

}  // namespace reprise
