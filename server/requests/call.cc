#include "server/requests/call.h"

namespace reprise {

void QueuedCall::Cancel() {
  for (const std::weak_ptr<Part>& part : parts_) {
    if (auto alive = part.lock()) scheduler_.Cancel(alive);
  }
}

void QueuedCall::FinishPart(size_t index, PartAnswer answer) {
  const bool failed = !answer.response.status.ok();
  answers_[index] = std::move(answer);
  if (unfinished_.fetch_sub(1) == 1) {
    // It answers whatever happens: see Inference::Start.
    done_(FinishRequest(state_, answers_, clock_));
  } else if (failed && !failed_.exchange(true)) {
    Cancel();  // the answer is an error whatever the other parts say
  }
}

}  // namespace reprise
