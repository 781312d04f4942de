// The methods of Scheduler.
#pragma once

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/batching/model_queue-inl.h"
#include "runtime/batching/scheduler.h"

namespace reprise {

// Waits end at least this often, so that a clock which is not the system's cannot strand a thread.
inline constexpr std::chrono::nanoseconds kLongestSchedulerWait = std::chrono::seconds(1);

inline std::chrono::nanoseconds TimeUntil(int64_t wake_ns, int64_t now_ns) {
  if (wake_ns == kNoDeadline) return kLongestSchedulerWait;
  return std::clamp(std::chrono::nanoseconds(wake_ns - now_ns), std::chrono::nanoseconds(0),
                    kLongestSchedulerWait);
}

template <typename Item>
void Scheduler<Item>::Drop(const Dropped& dropped) {
  for (const std::shared_ptr<Item>& item : dropped) item->Drop(item->place.why);
}

template <typename Item>
std::shared_ptr<ModelQueue<Item>> Scheduler<Item>::AddModel(QueueOptions<Item> options) {
  std::shared_ptr<Queue> queue;
  {
    MutexLock lock(mutex_);
    queue = std::make_shared<Queue>(std::move(options), shares_);
    queues_.push_back(queue);
  }
  return std::shared_ptr<Queue>(queue.get(), [this](Queue* gone) {
    std::list<std::shared_ptr<Queue>> removed;  // its contents end outside of the lock
    MutexLock lock(mutex_);
    const auto it = std::find_if(queues_.begin(), queues_.end(),
                                 [gone](const auto& each) { return each.get() == gone; });
    if (it != queues_.end()) removed.splice(removed.end(), queues_, it);
  });
}

template <typename Item>
absl::Status Scheduler<Item>::Submit(const std::shared_ptr<Queue>& queue,
                                     absl::Span<const std::shared_ptr<Item>> items) {
  Dropped dropped;
  absl::Status status;
  {
    MutexLock lock(mutex_);
    RETURN_IF_ERROR(refuse_);
    const int64_t now_ns = clock_.NowNs();
    int64_t deadline_ns = kNoDeadline;
    for (const auto& item : items) deadline_ns = std::min(deadline_ns, item->shape.deadline_ns);
    if (deadline_ns <= now_ns) {
      return absl::DeadlineExceededError(absl::StrCat("the deadline passed ",
                                                      (now_ns - deadline_ns) / 1000,
                                                      " us before the request was queued"));
    }
    status = queue->Push(items, now_ns);
    if (!status.ok()) {
      // Expired requests must not keep a live one out.
      queue->RemoveExpired(now_ns, dropped);
      if (!dropped.empty()) status = queue->Push(items, now_ns);
    }
    if (status.ok()) {
      work_.NotifyOne();
      if (deadline_ns != kNoDeadline) deadlines_.NotifyOne();
    }
  }
  Drop(dropped);
  return status;
}

template <typename Item>
void Scheduler<Item>::Cancel(const std::shared_ptr<Item>& item) {
  const auto cancelled = [](const char* text) {
    return StatusWithoutFail(absl::StatusCode::kCancelled,
                             [&] { return absl::CancelledError(text); });
  };
  Dropped dropped;
  {
    MutexLock lock(mutex_);
    if (item->place.queue != nullptr) {
      item->place.queue->Remove(
          item, cancelled("the client cancelled the request before it was started"), dropped);
      idle_.NotifyAll();
    } else if (item->place.run != nullptr) {
      item->place.why = cancelled("the client cancelled the request while it was computed");
      LeaveLocked(*item, clock_.NowNs(), dropped);
    } else {
      return;
    }
  }
  Drop(dropped);
}

template <typename Item>
typename std::list<std::shared_ptr<ModelQueue<Item>>>::iterator Scheduler<Item>::NextQueueLocked() {
  auto next = queues_.end();
  std::pair<double, int64_t> least;
  for (auto it = queues_.begin(); it != queues_.end(); ++it) {
    const Queue& queue = **it;
    if (queue.empty() || !queue.may_run() || queue.looked == round_) continue;
    const std::pair<double, int64_t> of_queue = queue.Next();
    if (next != queues_.end() && of_queue >= least) continue;
    next = it;
    least = of_queue;
  }
  return next;
}

template <typename Item>
std::optional<typename Scheduler<Item>::Batch> Scheduler<Item>::TakeLocked(int64_t now_ns,
                                                                           int64_t& wake_ns,
                                                                           Dropped& dropped) {
  ++round_;
  for (auto it = NextQueueLocked(); it != queues_.end(); it = NextQueueLocked()) {
    Queue& queue = **it;
    queue.looked = round_;
    queue.RemoveExpired(now_ns, dropped);
    if (queue.empty()) continue;
    const auto make_release = [&]() -> typename Queue::Release {
      return [this, held = *it](int64_t number, const absl::Status& status) {
        PutBack(held, number, status);
      };
    };
    auto taken = queue.Take(now_ns, wake_ns, make_release, dropped);
    if (!taken) continue;
    Batch batch = {.queue = *it,
                   .items = std::move(taken->items),
                   .builder = std::move(taken->builder),
                   .taken_ns = now_ns,
                   .run = &taken->run.front()};
    ++queue.running;
    CountRunning(batch, now_ns, 1);
    runs_.splice(runs_.end(), taken->run);
    // One Submit wakes one stream, which wakes another if items are left.
    if (!queue.empty()) work_.NotifyOne();
    return batch;
  }
  return std::nullopt;
}

template <typename Item>
std::optional<typename Scheduler<Item>::Batch> Scheduler<Item>::TryTake(int64_t* wake_ns) {
  Dropped dropped;
  int64_t wake = kNoDeadline;
  std::optional<Batch> batch;
  {
    MutexLock lock(mutex_);
    batch = TakeLocked(clock_.NowNs(), wake, dropped);
  }
  Drop(dropped);
  if (wake_ns != nullptr) *wake_ns = wake;
  return batch;
}

template <typename Item>
std::optional<typename Scheduler<Item>::Batch> Scheduler<Item>::Take(int stream) {
  while (true) {
    Dropped dropped;
    std::optional<Batch> batch;
    {
      MutexLock lock(mutex_);
      const int64_t now_ns = clock_.NowNs();
      int64_t wake_ns = kNoDeadline;
      batch = TakeLocked(now_ns, wake_ns, dropped);
      if (batch) batch->run->stream = stream;
      if (!dropped.empty() && IdleLocked()) idle_.NotifyAll();
      if (!batch && dropped.empty()) {
        if (shut_down_) return std::nullopt;
        work_.WaitFor(mutex_, TimeUntil(wake_ns, now_ns));
      }
    }
    Drop(dropped);
    if (batch) return batch;
  }
}

template <typename Item>
void Scheduler<Item>::PutBack(const std::shared_ptr<Queue>& queue, int64_t number,
                              const absl::Status& status) {
  Dropped dropped;
  {
    MutexLock lock(mutex_);
    queue->PutBack(number, status, dropped);
    if (!queue->empty()) work_.NotifyOne();
    if (IdleLocked()) idle_.NotifyAll();
  }
  Drop(dropped);
}

template <typename Item>
void Scheduler<Item>::Finish(const Batch& batch) {
  std::list<RunningBatch<Item>> ended;  // its items end outside of the lock
  {
    MutexLock lock(mutex_);
    const auto it = std::find_if(runs_.begin(), runs_.end(),
                                 [&](const RunningBatch<Item>& run) { return &run == batch.run; });
    REPRISE_CHECK(it != runs_.end());
    for (const auto& item : it->wanted) item->place.run = nullptr;
    ended.splice(ended.end(), runs_, it);
    --batch.queue->running;
    const int64_t now_ns = clock_.NowNs();
    CountRunning(batch, now_ns, -1);
    int64_t tokens = 0;
    for (const auto& item : batch.items) tokens += item->shape.tokens;
    batch.queue->OnFinished(tokens, now_ns - batch.taken_ns);
    if (!batch.queue->empty()) work_.NotifyOne();
    if (IdleLocked()) idle_.NotifyAll();
    if (shut_down_) deadlines_.NotifyAll();
  }
  const RunningBatch<Item>& run = ended.front();
  if (!run.reported) return;
  WhereMemoryAllows([&] {
    Tell(events_.on_end, {{run.stream, batch.queue->options().name, run.stopped_ns}});
  });
}

template <typename Item>
void Scheduler<Item>::LeaveLocked(Item& item, int64_t now_ns, Dropped& dropped) {
  RunningBatch<Item>& run = *std::exchange(item.place.run, nullptr);
  dropped.splice(dropped.end(), run.wanted, item.place.position);
  if (run.wanted.empty()) run.Stop(now_ns);
}

template <typename Item>
int64_t Scheduler<Item>::ExpireRunLocked(RunningBatch<Item>& run, int64_t now_ns,
                                         Dropped& dropped) {
  const bool overdue = run.IsOverdue(now_ns);
  for (auto it = run.wanted.begin(); it != run.wanted.end();) {
    Item& item = **it++;
    if (overdue) {
      item.place.why = StatusWithoutFail(absl::StatusCode::kResourceExhausted, [&] {
        return absl::ResourceExhaustedError(absl::StrCat(
            "the request has computed for ", (now_ns - run.stop.computing_since_ns()) / 1'000'000,
            " ms, the limit is ", run.max_ns / 1'000'000, " (reprise.max_request_ms)"));
      });
    } else if (item.shape.end_ns <= now_ns) {
      item.place.why = StatusWithoutFail(absl::StatusCode::kDeadlineExceeded, [&] {
        return absl::DeadlineExceededError(absl::StrCat(
            "the deadline passed after ", (now_ns - item.place.enqueued_ns) / 1000, " us, ",
            (now_ns - run.taken_ns) / 1000, " us after a stream had begun with the request"));
      });
    } else {
      continue;
    }
    LeaveLocked(item, now_ns, dropped);
  }
  return run.next_ns();
}

template <typename Item>
int64_t Scheduler<Item>::ExpireLocked(int64_t now_ns, Dropped& dropped) {
  int64_t next_ns = kNoDeadline;
  for (const auto& queue : queues_) {
    queue->RemoveExpired(now_ns, dropped);
    next_ns = std::min(next_ns, queue->earliest_deadline_ns());
  }
  for (RunningBatch<Item>& run : runs_)
    next_ns = std::min(next_ns, ExpireRunLocked(run, now_ns, dropped));
  if (!dropped.empty()) idle_.NotifyAll();
  return next_ns;
}

template <typename Item>
std::list<StuckRun> Scheduler<Item>::NewlyStuckLocked(int64_t now_ns) {
  std::list<StuckRun> stuck;
  for (RunningBatch<Item>& run : runs_) {
    if (run.reported || !run.IsStuck(now_ns)) continue;
    // A run whose items have all left has no item that would know its queue.
    WhereMemoryAllows([&] { stuck.push_back({run.stream, run.name, run.stopped_ns}); });
    run.reported = true;
  }
  return stuck;
}

template <typename Item>
void Scheduler<Item>::Tell(const std::function<void(const StuckRun&)>& event,
                           const std::list<StuckRun>& runs) {
  if (event == nullptr) return;
  for (const StuckRun& run : runs) WhereMemoryAllows([&] { event(run); });
}

template <typename Item>
int64_t Scheduler<Item>::Expire() {
  Dropped dropped;
  std::list<StuckRun> stuck;
  int64_t next_ns;
  {
    MutexLock lock(mutex_);
    next_ns = ExpireLocked(clock_.NowNs(), dropped);
    stuck = NewlyStuckLocked(clock_.NowNs());
  }
  Drop(dropped);
  Tell(events_.on_stuck, stuck);
  return next_ns;
}

template <typename Item>
void Scheduler<Item>::ExpireUntilShutdown() {
  while (true) {
    Dropped dropped;
    std::list<StuckRun> stuck;
    {
      MutexLock lock(mutex_);
      // Stuck runs are reported during the shutdown, too.
      if (shut_down_ && runs_.empty()) return;
      const int64_t now_ns = clock_.NowNs();
      const int64_t next_ns = ExpireLocked(now_ns, dropped);
      stuck = NewlyStuckLocked(now_ns);
      if (dropped.empty() && stuck.empty()) deadlines_.WaitFor(mutex_, TimeUntil(next_ns, now_ns));
    }
    Drop(dropped);
    Tell(events_.on_stuck, stuck);
  }
}

template <typename Item>
bool Scheduler<Item>::IdleLocked() const {
  return runs_.empty() && std::all_of(queues_.begin(), queues_.end(),
                                      [](const auto& queue) { return queue->idle(); });
}

template <typename Item>
void Scheduler<Item>::StopAccepting(const absl::Status& why) {
  MutexLock lock(mutex_);
  refuse_ = why;
}

template <typename Item>
bool Scheduler<Item>::WaitUntilIdle(std::chrono::nanoseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  MutexLock lock(mutex_);
  while (!IdleLocked()) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= left.zero()) return false;
    idle_.WaitFor(mutex_, std::min<std::chrono::nanoseconds>(left, kLongestSchedulerWait));
  }
  return true;
}

template <typename Item>
void Scheduler<Item>::Shutdown(const absl::Status& why) {
  Dropped dropped;
  {
    MutexLock lock(mutex_);
    refuse_ = why;
    shut_down_ = true;
    for (const auto& queue : queues_) queue->RemoveAll(why, dropped);
    work_.NotifyAll();
    deadlines_.NotifyAll();
    idle_.NotifyAll();
  }
  Drop(dropped);
}

template <typename Item>
void Scheduler<Item>::StopRuns(const absl::Status& why) {
  Dropped dropped;
  {
    MutexLock lock(mutex_);
    const int64_t now_ns = clock_.NowNs();
    for (RunningBatch<Item>& run : runs_) {
      while (!run.wanted.empty()) {
        run.wanted.front()->place.why = why;
        LeaveLocked(*run.wanted.front(), now_ns, dropped);
      }
      run.Stop(now_ns);
    }
    deadlines_.NotifyAll();
  }
  Drop(dropped);
}

template <typename Item>
void Scheduler<Item>::CountRunning(const Batch& batch, int64_t now_ns, int sign) {
  for (const auto& item : batch.items) load_running_.tokens += sign * item->shape.tokens;
  load_running_.requests += sign * static_cast<int64_t>(batch.items.size());
  begun_ns_ += sign * batch.taken_ns;
  if (sign < 0) busy_ns_ += now_ns - batch.taken_ns;
}

template <typename Item>
typename Scheduler<Item>::Load Scheduler<Item>::GetLoad() const {
  MutexLock lock(mutex_);
  Load load = {
      .running = load_running_,
      .busy_ns = busy_ns_ + static_cast<int64_t>(runs_.size()) * clock_.NowNs() - begun_ns_};
  for (const auto& queue : queues_) {
    load.waiting.requests += queue->depth();
    load.waiting.tokens += queue->tokens();
  }
  return load;
}

template <typename Item>
int64_t Scheduler<Item>::Depth(const Queue& queue) const {
  MutexLock lock(mutex_);
  return queue.depth();
}

}  // namespace reprise
