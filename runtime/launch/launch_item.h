// LaunchItem: a request, or some of its rows, from Submit to its answer. The item of the scheduler.
//
// Ownership: the queue or a stream holds items; the items of one request share its call.
// Threads:   any. An item that waits is dropped; one that a stream has taken is answered by that
//            stream alone, since the replay reads the caller's bytes until it ends: dropping
//            it then only makes the replay stop.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/batching/dispatcher.h"
#include "runtime/batching/scheduler.h"
#include "runtime/engine/engine.h"

namespace reprise {

class LaunchPlan;

// One request: its answer is there when the answers of all its parts are.
class LaunchCall {
 public:
  using Done = std::function<void(Response)>;
  LaunchCall(std::shared_ptr<const Model> model, size_t parts, Done done)
      : model_(std::move(model)), responses_(parts), left_(parts), done_(std::move(done)) {}

  // Called from any thread, once for each part; the last call calls `done`.
  void Finish(size_t part, Response response);
  const Model& model() const { return *model_; }

 private:
  const std::shared_ptr<const Model> model_;
  std::vector<Response> responses_;  // each written by the thread that finishes its part
  std::atomic<size_t> left_;
  const Done done_;
};

class LaunchItem final : public WorkItem<LaunchItem> {
 public:
  using Builder = LaunchPlan;

  LaunchItem(std::shared_ptr<LaunchCall> call, size_t index, RequestPart part)
      : request(std::move(part.request)),
        measured(std::move(part.shape)),
        call_(std::move(call)),
        index_(index) {}

  void Drop(const absl::Status& why) {
    if (!taken) Finish({.status = why});
  }
  void Finish(Response response) { call_->Finish(index_, std::move(response)); }
  const LaunchCall& call() const { return *call_; }

  const Request request;
  const RequestShape measured;
  // The capture that it was held back for. Guarded by the scheduler's mutex.
  mutable std::shared_ptr<CaptureTicket> waited_for;
  // A stream runs it. Set under the scheduler's mutex, before another thread can find it running.
  mutable std::atomic<bool> taken{false};

 private:
  const std::shared_ptr<LaunchCall> call_;
  const size_t index_;
};

// Which items share a replay: see BatchBuilder in runtime/batching/model_queue.h. The model's own
// decision (BatchPlan), as in the daemon.
class LaunchPlan {
 public:
  // Items in the plan keep the model. `batches`: false: it takes one item only.
  LaunchPlan(Engine& engine, const Model& model, bool batches)
      : engine_(engine), model_(model), batches_(batches), plan_(model) {}

  bool TryAdd(const LaunchItem& item);
  std::vector<size_t> Order(absl::Span<const LaunchItem* const> waiting) const;
  bool full() const { return (!batches_ && !items_.empty()) || plan_.full(); }
  bool Start(std::function<void(absl::Status)> ready);
  const BatchPlan& plan() const { return plan_; }

 private:
  Engine& engine_;
  const Model& model_;
  const bool batches_;
  BatchPlan plan_;
  std::vector<const LaunchItem*> items_;
};

using LaunchScheduler = Scheduler<LaunchItem>;
using LaunchDispatcher = Dispatcher<LaunchItem>;

// Runs a batch on `stream` and answers its items.
void ExecuteLaunches(LaunchScheduler::Batch& batch, Engine& engine, Stream& stream);

}  // namespace reprise
