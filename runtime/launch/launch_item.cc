#include "runtime/launch/launch_item.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/batching/scheduler-inl.h"

namespace reprise {

template class ModelQueue<LaunchItem>;
template class Scheduler<LaunchItem>;

void LaunchCall::Finish(size_t part, Response response) {
  responses_[part] = std::move(response);
  if (left_.fetch_sub(1) > 1) return;
  Response joined;
  if (responses_.size() == 1) {
    joined = std::move(responses_[0]);
  } else {
    const absl::Status status = WithinMemory([] { return "joining the rows of an answer"; },
                                             [&] {
                                               joined = JoinRows(*model_, std::move(responses_));
                                               return absl::OkStatus();
                                             });
    if (!status.ok()) joined = Response{.status = status};
  }
  done_(std::move(joined));
}

bool LaunchPlan::TryAdd(const LaunchItem& item) {
  const std::optional<RequestShape> changed = model_.MeasureAgain(item.measured);
  const bool chosen = !items_.empty();  // The others were named by Order.
  if (!plan_.TryAdd(changed.has_value() ? *changed : item.measured, item.waited_for, chosen)) {
    return false;
  }
  items_.push_back(&item);
  return true;
}

std::vector<size_t> LaunchPlan::Order(absl::Span<const LaunchItem* const> waiting) const {
  std::vector<const RequestShape*> shapes;
  for (const LaunchItem* item : waiting) shapes.push_back(&item->measured);
  return plan_.Choose(shapes);
}

bool LaunchPlan::Start(std::function<void(absl::Status)> ready) {
  const std::shared_ptr<CaptureTicket> ticket = engine_.Prepare(plan_, std::move(ready));
  for (const LaunchItem* item : items_) {
    if (ticket != nullptr) item->waited_for = ticket;
    item->taken = ticket == nullptr;
  }
  if (ticket == nullptr) return true;
  return false;
}

void ExecuteLaunches(LaunchScheduler::Batch& batch, Engine& engine, Stream& stream) {
  size_t finished = 0;
  const absl::Status executed =
      WithinMemory([&] { return batch.queue->options().name; },
                   [&] {
                     std::vector<const Request*> requests;
                     for (const auto& item : batch.items) requests.push_back(&item->request);
                     std::vector<Response> responses =
                         engine.Run(batch.builder->plan(), requests, stream, &batch.run->stop);
                     REPRISE_CHECK(responses.size() == batch.items.size());
                     for (Response& response : responses)
                       batch.items[finished++]->Finish(std::move(response));
                     return absl::OkStatus();
                   });
  while (finished < batch.items.size()) batch.items[finished++]->Finish({.status = executed});
}

}  // namespace reprise
