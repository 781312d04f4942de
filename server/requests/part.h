// Part: a request, or some of its rows, from the queue to the end of its replay. The item of the
// scheduler.
//
// Ownership: the queue or a stream holds the parts; they share their call.
// Threads:   methods are safe from any thread; each part is finished or dropped exactly once.
// Memory:    finishing and dropping throw nothing.
#pragma once

#include <memory>
#include <utility>

#include "runtime/batching/dispatcher.h"
#include "runtime/batching/scheduler.h"
#include "runtime/engine/engine.h"
#include "server/repository/statistics.h"

namespace reprise {

class Call;
class PlanBuilder;

class Part final : public WorkItem<Part> {
 public:
  using Builder = PlanBuilder;

  Part(std::shared_ptr<Call> call, size_t index, RequestPart part)
      : request(std::move(part.request)),
        measured(std::move(part.shape)),
        call_(std::move(call)),
        index_(index) {}

  void Drop(const absl::Status& why);
  void Finish(Response response, const PhaseTimes& times);
  const Call& call() const { return *call_; }

  const Request request;
  const RequestShape measured;
  // The last capture that it was held back for. Guarded by the scheduler's mutex.
  mutable std::shared_ptr<CaptureTicket> waited_for;

 private:
  const std::shared_ptr<Call> call_;
  const size_t index_;
};

using RequestScheduler = Scheduler<Part>;
using RequestDispatcher = Dispatcher<Part>;

}  // namespace reprise
