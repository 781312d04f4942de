// Scheduler: gives streams their next batch, fairly across models.
//
// A stream that asks takes the queued items at once; a delay is waited only by a stream that has
// nothing else to do. Shares are served by their weights (see Lane); the models of a share that
// have work take turns. Cancelled and expired requests leave before any work is spent on them;
// requests that a stream runs already are answered at once, and the stream is told to stop when no
// item waits for its batch any more (see RunningBatch).
//
// A batch whose recipe is being captured is held back meanwhile: its items still wait, expire and
// can be cancelled, and no stream waits for it.
//
// The methods are in scheduler-inl.h, which the file that instantiates them includes (see
// WorkItem).
//
// Ownership: queues are shared: a removed one lives until its last batch has finished.
// Threads:   all methods are safe from any thread. Items are dropped with no lock held.
//            All callbacks of a builder's Start must be over when the scheduler
//            goes.
// Memory:    where there is none, Submit may throw, having queued nothing. All else throws nothing:
//            a batch that cannot be made drops its first item.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/batching/model_queue.h"
#include "runtime/batching/running_batch.h"
#include "runtime/batching/work.h"

namespace reprise {

template <typename Item>
class Scheduler {
 public:
  using Queue = ModelQueue<Item>;
  struct Batch {
    std::shared_ptr<Queue> queue;
    std::vector<std::shared_ptr<Item>> items;  // as in ModelQueue::Batch
    std::unique_ptr<typename Item::Builder> builder;
    int64_t taken_ns = 0;
    RunningBatch<Item>* run = nullptr;  // Finish ends it
  };
  // Called for a run that is stuck, and for one that was and has ended. Called with no lock held.
  struct StuckEvents {
    std::function<void(const StuckRun& run)> on_stuck;
    std::function<void(const StuckRun& run)> on_end;
  };

  // `clock` must outlive the scheduler.
  explicit Scheduler(const Clock& clock, StuckEvents events = {})
      : clock_(clock), events_(std::move(events)) {}

  // Adds a queue, which takes part until the last user releases the result; waiting and running
  // items must not outlive it, and the scheduler outlives it.
  std::shared_ptr<Queue> AddModel(QueueOptions<Item> options);

  // Queues all items or none. Errors: RESOURCE_EXHAUSTED when the queue is full, UNAVAILABLE after
  // StopAccepting, DEADLINE_EXCEEDED when the deadline has passed already.
  absl::Status Submit(const std::shared_ptr<Queue>& queue,
                      absl::Span<const std::shared_ptr<Item>> items);
  // Drops the item with CANCELLED if it waits or runs; otherwise does nothing.
  void Cancel(const std::shared_ptr<Item>& item);

  // Returns the next batch, if one should start now. Otherwise nullopt, and `wake_ns` (if not null)
  // is the time at which to ask again, kNoDeadline if only a Submit can change that.
  std::optional<Batch> TryTake(int64_t* wake_ns = nullptr);
  // Waits for the next batch, to be run by `stream`; nullopt once the scheduler was shut down.
  std::optional<Batch> Take(int stream = -1);
  // Must be called once for every batch taken.
  void Finish(const Batch& batch);

  // Drops the expired items, waiting or running, and returns the next deadline.
  int64_t Expire();
  // Drops each request when its deadline comes, until Shutdown: the body of a thread.
  void ExpireUntilShutdown();

  // Makes Submit answer `why` from now on; items that wait are still executed.
  void StopAccepting(const absl::Status& why);
  // Waits until nothing waits and nothing runs; false if `timeout` came first.
  bool WaitUntilIdle(std::chrono::nanoseconds timeout);
  // Drops the waiting items with `why` and lets every Take return.
  void Shutdown(const absl::Status& why);
  // Drops the running items with `why`, and tells the runs to stop.
  void StopRuns(const absl::Status& why);

  int64_t Depth(const Queue& queue) const;

  // All queues together.
  struct Load {
    WorkLoad waiting;
    WorkLoad running;
    int64_t busy_ns = 0;  // the sum over all streams of the time for which they have run batches
  };
  Load GetLoad() const;

 private:
  using Dropped = typename Queue::Dropped;
  std::optional<Batch> TakeLocked(int64_t now_ns, int64_t& wake_ns, Dropped& dropped)
      REQUIRES(mutex_);
  // Returns the queue to ask next in this round: its next share has had the least; of equal ones
  // the one whose turn it is. The end: there is none.
  typename std::list<std::shared_ptr<Queue>>::iterator NextQueueLocked() REQUIRES(mutex_);
  // Notes that the items that `queue` holds back under `number` may be tried again, or have failed.
  void PutBack(const std::shared_ptr<Queue>& queue, int64_t number, const absl::Status& status);
  int64_t ExpireLocked(int64_t now_ns, Dropped& dropped) REQUIRES(mutex_);
  int64_t ExpireRunLocked(RunningBatch<Item>& run, int64_t now_ns, Dropped& dropped)
      REQUIRES(mutex_);
  // Moves an item of a run to `dropped`; the run is to stop when it was the last one.
  void LeaveLocked(Item& item, int64_t now_ns, Dropped& dropped) REQUIRES(mutex_);
  // Moves the runs that became stuck since the last call; the list is empty nearly always.
  std::list<StuckRun> NewlyStuckLocked(int64_t now_ns) REQUIRES(mutex_);
  void Tell(const std::function<void(const StuckRun&)>& event, const std::list<StuckRun>& runs);
  bool IdleLocked() const REQUIRES(mutex_);
  static void Drop(const Dropped& dropped);
  // Adds the batch to the counts of running work, or removes it.
  void CountRunning(const Batch& batch, int64_t now_ns, int sign) REQUIRES(mutex_);

  // Constant after construction.
  const Clock& clock_;
  const StuckEvents events_;
  // Guarded.
  mutable Mutex mutex_;
  CondVar work_;                      // something to take may have come
  CondVar deadlines_;                 // the earliest deadline may have changed
  CondVar idle_;                      // the last batch may have finished
  Shares shares_ GUARDED_BY(mutex_);  // comes before the queues
  std::list<std::shared_ptr<Queue>> queues_ GUARDED_BY(mutex_);
  int64_t round_ GUARDED_BY(mutex_) = 0;
  std::list<RunningBatch<Item>> runs_ GUARDED_BY(mutex_);
  WorkLoad load_running_ GUARDED_BY(mutex_);
  int64_t busy_ns_ GUARDED_BY(mutex_) = 0;   // the time of batches that have finished
  int64_t begun_ns_ GUARDED_BY(mutex_) = 0;  // the sum of the times at which running ones began
  absl::Status refuse_ GUARDED_BY(mutex_);   // not OK: Submit answers it
  bool shut_down_ GUARDED_BY(mutex_) = false;
};

}  // namespace reprise
