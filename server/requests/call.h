// Call: one request in flight, and its parts, each of which goes into a replay of its own.
//
// Ownership: the parts share the call; the queue or a stream holds the parts.
// Threads:   methods are safe from any thread; each part is finished exactly once.
// Memory:    finishing and dropping throw nothing: where there is no memory for an answer, the call
//            is finished with that error.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/engine/engine.h"
#include "server/batching/scheduler.h"
#include "server/requests/inference.h"

namespace reprise {

// One request, or some of its rows, in the queue.
class Part final : public WorkItem {
 public:
  Part(std::shared_ptr<Call> call, size_t index, Request request, RequestShape measured)
      : request(std::move(request)),
        measured(std::move(measured)),
        call_(std::move(call)),
        index_(index) {}

  void Drop(const absl::Status& why) override;
  void Finish(Response response, const PhaseTimes& times);
  ModelVersion* model_version() const;

  const Request request;
  const RequestShape measured;
  // The last capture that it was held back for. Guarded by the scheduler's mutex.
  mutable std::shared_ptr<CaptureTicket> waited_for;

 private:
  const std::shared_ptr<Call> call_;
  const size_t index_;
};

class Call {
 public:
  // `shape`: by ShapeColumns of its model. `texts`: null where none of its outputs is text.
  Call(Repository::Found model, std::vector<int> outputs, std::shared_ptr<const RequestTexts> texts,
       std::vector<int64_t> shape, int64_t rows, size_t parts, int64_t start_ns, const Clock& clock,
       Scheduler& scheduler, Inference::Done done);

  // Before Submit: what Cancel and a failing part drop.
  void SetParts(std::vector<std::weak_ptr<Part>> parts) { parts_ = std::move(parts); }
  // Drops the parts that still wait.
  void CancelWaiting();
  void FinishPart(size_t index, Response response, const PhaseTimes& times);
  const Repository::Found& model() const { return model_; }

 private:
  void Complete();
  // The answer, or the error, of all parts; and the times of all.
  void Join(InferResult& result, PhaseTimes& times);
  // Places of `result` become the protocol's bytes of texts.
  absl::Status WriteTexts(InferResult& result) const;
  void Count(const InferResult& result, const PhaseTimes& times);

  // Constant once submitted.
  const Repository::Found model_;
  const std::vector<int> outputs_;
  const std::shared_ptr<const RequestTexts> texts_;
  const std::vector<int64_t> shape_;
  const int64_t rows_;
  const int64_t start_ns_;
  const Clock& clock_;
  Scheduler& scheduler_;
  const Inference::Done done_;
  std::vector<std::weak_ptr<Part>> parts_;
  // Each slot is written by its part alone, and read by the one that finishes last.
  std::vector<Response> responses_;
  std::vector<PhaseTimes> times_;
  // Self-synchronised.
  std::atomic<size_t> unfinished_;
  std::atomic<bool> failed_{false};
};

}  // namespace reprise
