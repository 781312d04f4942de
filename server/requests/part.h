// Part: a request, or some of its rows, from the queue to the end of its replay. The item of the
// scheduler.
//
// Ownership: the queue or a stream holds the parts; they share their call.
// Threads:   methods are safe from any thread. A part is answered by the first of Finish and Drop,
//            which may come at the same time: the other one does nothing.
// Memory:    finishing and dropping throw nothing.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "runtime/base/stop_flag.h"
#include "runtime/batching/dispatcher.h"
#include "runtime/batching/scheduler.h"
#include "runtime/engine/engine.h"
#include "runtime/generate/carried_steps.h"
#include "server/repository/statistics.h"

namespace reprise {

class QueuedCall;
class PlanBuilder;

class Part final : public WorkItem<Part> {
  StopFlag gone_;  // comes first: the request points to it

 public:
  using Builder = PlanBuilder;

  // `carrier`: computes requests with client-managed caches; null: there is none. The call keeps
  // it.
  Part(std::shared_ptr<QueuedCall> call, size_t index, RequestPart part,
       const CarriedSteps* carrier)
      : request(Watched(std::move(part.request), gone_)),
        measured(std::move(part.shape)),
        carried(carrier != nullptr && carrier->Takes(request).ok() ? carrier : nullptr),
        call_(std::move(call)),
        index_(index) {}

  void Drop(const absl::Status& why);
  void Finish(Response response, const PhaseTimes& times);
  const QueuedCall& call() const { return *call_; }
  // Returns whether it has been answered, so that a stream's result for it is unused.
  bool gone() const { return gone_.stopped(); }

  const Request request;  // its bytes live as long as the call
  const RequestShape measured;
  // Computes it, on the recipes of the model's steps; null: the engine does.
  const CarriedSteps* const carried;
  // The last capture that it was held back for. Guarded by the scheduler's mutex.
  mutable std::shared_ptr<CaptureTicket> waited_for;

 private:
  static Request Watched(Request request, const StopFlag& gone) {
    request.gone = &gone;
    return request;
  }
  void Answer(Response response, const PhaseTimes& times);

  std::atomic<bool> answered_{false};
  const std::shared_ptr<QueuedCall> call_;
  const size_t index_;
};

using RequestScheduler = Scheduler<Part>;
using RequestDispatcher = Dispatcher<Part>;

}  // namespace reprise
