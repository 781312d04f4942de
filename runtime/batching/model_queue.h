// ModelQueue: the requests of one model that wait, and which of them go into one replay.
//
// The requests of each share wait in a lane of their own. A batch is formed around the first item
// of the lane whose share has had the least; others join it.
//
// The methods are in model_queue-inl.h, which the file that instantiates them includes.
//
// Threads: not safe; the scheduler guards every call with its mutex.
// Errors:  Push answers RESOURCE_EXHAUSTED with the limit and the numbers.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/batching/drain_rate.h"
#include "runtime/batching/lane.h"
#include "runtime/batching/running_batch.h"
#include "runtime/batching/work.h"

namespace reprise {

// Which items go into one replay, decided before any of them is touched. One is made for each
// batch.
template <typename T, typename Item>
concept BatchBuilder = requires(T builder, const T& begun, const Item& item,
                                absl::Span<const Item* const> waiting,
                                std::function<void(absl::Status)> ready) {
  // Adds the item if it may share a replay with those added before, and if that is worth it.
  // The first one must be taken.
  { builder.TryAdd(item) } -> std::same_as<bool>;
  // Returns which of `waiting` to try to add, in which order: indices. The first of them was added
  // already.
  { begun.Order(waiting) } -> std::same_as<std::vector<size_t>>;
  // Returns whether no further row would fit.
  { begun.full() } -> std::same_as<bool>;
  // Called once, when the batch is to start. False: its recipe is being made ready; its items go on
  // waiting, and `ready` is called once, later and from another thread, with the reason if it could
  // not be made.
  { builder.Start(ready) } -> std::same_as<bool>;
};

template <typename Item>
struct QueueOptions {
  std::string name;  // "minilm version 1", for errors

  // Limits on the waiting items. The defaults admit 64 full batches of 4096 tokens. Where several
  // shares wait, one that has less than its part of a limit is let in beyond it.
  int64_t max_requests = 16384;
  int64_t max_tokens = 64 * 4096;
  // At least this many requests may wait, at any number of tokens, so that large ones, such as
  // images whose pixels count, are not refused for their size.
  int64_t always_admitted = 64;
  int64_t max_bytes = int64_t{1} << 30;
  // How long a request may have to wait for the tokens ahead of it, at the measured drain rate:
  // requests beyond that are refused at once. A request whose queue is empty is taken, however long
  // it computes, and requests that wait for a capture do not count as ahead. 0: no limit.
  int64_t max_wait_ns = 0;
  // At least this many tokens may wait, however long they take.
  int64_t always_waiting_tokens = 0;
  int64_t streams = 1;  // the number of streams

  // Starts a batch: the model decides which items go together. Absent: every item goes alone.
  std::function<std::unique_ptr<typename Item::Builder>()> start_batch;

  int64_t delay_ns = 0;     // how long an idle stream waits for more rows
  int64_t enough_rows = 0;  // a batch with this many rows does not wait; 0: a full one
  int64_t max_running = 0;  // replays at the same time; 0: as many as there are streams
  int64_t max_run_ns = 0;   // how long a batch may compute; 0: no limit

  // Called with the number of waiting requests after every change. Called with a lock held: be
  // quick.
  std::function<void(int64_t depth)> on_depth;
};

template <typename Item>
class ModelQueue {
 public:
  using ItemPointer = std::shared_ptr<Item>;
  using LaneType = Lane<Item>;
  using Release = std::function<void(int64_t number, absl::Status status)>;
  // Items that are to be dropped with their place.why. A list, so that moving them there needs no
  // memory: an item in no queue and in no such list is never answered.
  using Dropped = std::list<ItemPointer>;
  struct Batch {
    std::vector<ItemPointer> items;  // at least one; the first waited longest
    // the builder that took them, in their order; null without one
    std::unique_ptr<typename Item::Builder> builder;
    std::list<RunningBatch<Item>> run;  // one, with all of the items, once the batch is taken
  };

  // `shares` outlives the queue.
  ModelQueue(QueueOptions<Item> options, Shares& shares)
      : options_(std::move(options)), shares_(shares) {}
  ModelQueue(const ModelQueue&) = delete;
  ModelQueue& operator=(const ModelQueue&) = delete;

  // Queues all items, which have one share and one priority, or none of them. In their lane they
  // follow items of their priority and precede higher numbers, except items that waited for long.
  absl::Status Push(absl::Span<const ItemPointer> items, int64_t now_ns);
  // Moves the item, which must be in this queue, to `dropped`.
  void Remove(const ItemPointer& item, const absl::Status& why, Dropped& dropped);
  // Moves items whose deadline has come to `dropped`.
  void RemoveExpired(int64_t now_ns, Dropped& dropped);
  void RemoveAll(const absl::Status& why, Dropped& dropped);

  // Returns the next batch if one should start now. Otherwise nullopt, and `wake_ns` is lowered to
  // the time at which one should. The queue must not be empty. Items for which no batch can be made
  // (that takes memory) move to `dropped`.
  // Batches that cannot start (the builder's Start) are held back under a number of their own, and
  // the next one is looked at; the result of `make_release` is called with that number when they
  // may be tried again.
  std::optional<Batch> Take(int64_t now_ns, int64_t& wake_ns,
                            absl::FunctionRef<Release()> make_release, Dropped& dropped);
  // Puts the items that were held under `number` back where they were in the order, or, with an
  // error, moves them to `dropped`.
  void PutBack(int64_t number, const absl::Status& status, Dropped& dropped);

  // Returns whether there is nothing to take; items may be held back.
  bool empty() const { return ready_ == 0; }
  // Returns whether nothing waits at all.
  bool idle() const { return empty() && held_.empty(); }
  bool may_run() const { return options_.max_running == 0 || running < options_.max_running; }
  int64_t depth() const { return ready_ + static_cast<int64_t>(held_.size()); }
  // Returns how much the share has had that is next here, and when it had its turn here. The queue
  // must not be empty.
  std::pair<double, int64_t> Next() const {
    const LaneType& front = FrontLane();
    return {front.share->had, front.turn};
  }
  int64_t tokens() const { return tokens_; }
  int64_t earliest_deadline_ns() const;
  const QueueOptions<Item>& options() const { return options_; }

  // Notes that a batch that was taken has ended. Counts for the rate at which the queue drains.
  void OnFinished(int64_t tokens, int64_t run_ns);

  // Kept by the scheduler.
  int64_t running = 0;  // replays of this model now
  int64_t looked = 0;   // the last round in which it was asked for a batch

 private:
  const LaneType& FrontLane() const;
  // Returns the lane for an item, made where there is none.
  LaneType& LaneOf(const WorkShape& shape);
  // Moves items that have waited for long before others of their lane.
  void Age(LaneType& lane, int64_t now_ns);
  // Checks that `added` units fit, of which `waiting` are there, `own` in `lane`.
  absl::Status CheckLimit(const char* unit, const LaneType& lane, int64_t waiting, int64_t own,
                          int64_t added, int64_t limit) const;
  // Returns the part of all waiting work that is for `lane`, by weights.
  double PartOf(const LaneType& lane) const;
  // Returns the front item and its best companions.
  Batch Form() const;
  enum class Start { kNow, kLater, kHeld };
  // Forms `batch` and asks whether it may start: now, not before `wake_ns`, or when the release is
  // called with `number`, which becomes the batch's number.
  absl::StatusOr<Start> TryStart(int64_t now_ns, int64_t& wake_ns,
                                 absl::FunctionRef<Release()> make_release, int64_t number,
                                 Batch& batch) const;
  bool WorthWaiting(const Batch& batch) const;
  // Moves the item to `to`. Needs no memory, like all functions that move items.
  void Unlink(const ItemPointer& item, std::list<ItemPointer>& to);
  // Moves it into its lane, after the items of its rank that came before it.
  void Link(std::list<ItemPointer>& from, typename std::list<ItemPointer>::iterator position);
  void RemoveExpired(std::list<ItemPointer>& items, int64_t now_ns, Dropped& dropped);
  void ReportDepth() const;
  // Returns an error if an item of `priority` would have to wait too long.
  absl::Status CheckWait(const LaneType& lane, uint64_t priority) const;
  void CountTokens(const Item& item, int sign);

  const QueueOptions<Item> options_;
  Shares& shares_;
  std::list<LaneType> lanes_;    // sorted by arrival
  std::list<ItemPointer> held_;  // unordered, of all lanes
  int64_t ready_ = 0;            // items in lanes
  int64_t next_number_ = 1;
  int64_t next_arrival_ = 0;
  int64_t tokens_ = 0;
  DrainRate rate_;
  int64_t bytes_ = 0;
  int64_t with_deadline_ = 0;  // so that queues without deadlines are not searched for them
};

}  // namespace reprise
