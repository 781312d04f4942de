// Call: one request in flight, as its caller holds it. QueuedCall: one that is in the queue: the
// facts about it, its parts, and the receiver of the answer.
//
// Ownership: the parts share a queued call. `done`, and with it the memory that the request points
//            into, lives until the last of them is destroyed: a stream may read the bytes of a
//            request that has been answered already.
// Threads:   methods are safe from any thread; each part is finished exactly once.
// Memory:    finishing throws nothing: where there is no memory for an answer, the call is finished
//            with that error.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "server/requests/finish.h"
#include "server/requests/part.h"
#include "server/requests/stage.h"

namespace reprise {

class Call {
 public:
  using Done = std::function<void(InferResult)>;

  virtual ~Call() = default;
  // Ends it with CANCELLED, whether it waits or runs.
  virtual void Cancel() = 0;
};

class QueuedCall final : public Call {
 public:
  QueuedCall(RequestState state, size_t parts, const Clock& clock, RequestScheduler& scheduler,
             Done done)
      : state_(std::move(state)),
        clock_(clock),
        scheduler_(scheduler),
        done_(std::move(done)),
        answers_(parts),
        unfinished_(parts) {}

  // Called before Submit: the parts that Cancel and a failing part drop.
  void SetParts(std::vector<std::weak_ptr<Part>> parts) { parts_ = std::move(parts); }
  // Drops the parts that wait or run.
  void Cancel() override;
  void FinishPart(size_t index, PartAnswer answer);
  ModelVersion& version() const { return *state_.model.version; }

 private:
  // Constant once submitted.
  const RequestState state_;
  const Clock& clock_;
  RequestScheduler& scheduler_;
  const Done done_;
  std::vector<std::weak_ptr<Part>> parts_;
  // Each slot is written by its part alone, and read by the one that finishes last.
  std::vector<PartAnswer> answers_;
  // Self-synchronised.
  std::atomic<size_t> unfinished_;
  std::atomic<bool> failed_{false};
};

}  // namespace reprise
