// The methods of ModelQueue.
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/batching/model_queue.h"

namespace reprise {

// How many waiting items are looked at for one batch: bounds the time under the scheduler's lock.
inline constexpr size_t kBatchWindow = 256;
// An item that has waited this long goes before all others of its lane, at any priority.
inline constexpr int64_t kLongQueueWaitNs = 5'000'000'000;

template <typename Item>
void ModelQueue<Item>::ReportDepth() const {
  if (options_.on_depth) WhereMemoryAllows([&] { options_.on_depth(depth()); });
}

template <typename Item>
const Lane<Item>& ModelQueue<Item>::FrontLane() const {
  const LaneType* front = nullptr;
  const auto sooner = [](const LaneType& a, const LaneType& b) {
    return std::pair(a.share->had, a.items.front()->place.arrival) <
           std::pair(b.share->had, b.items.front()->place.arrival);
  };
  for (const LaneType& lane : lanes_) {
    if (!lane.items.empty() && (front == nullptr || sooner(lane, *front))) front = &lane;
  }
  REPRISE_CHECK(front != nullptr);
  return *front;
}

template <typename Item>
Lane<Item>& ModelQueue<Item>::LaneOf(const WorkShape& shape) {
  const auto found = std::find_if(lanes_.begin(), lanes_.end(),
                                  [&](const LaneType& lane) { return lane.id == shape.share; });
  if (found != lanes_.end()) {
    found->share->weight = shape.weight;
    return *found;
  }
  lanes_.remove_if([](const LaneType& lane) { return lane.depth() == 0; });
  LaneType lane;
  lane.share = &shares_.Of(shape.share, shape.weight);
  lane.id = shape.share;
  return lanes_.emplace_back(std::move(lane));
}

template <typename Item>
double ModelQueue<Item>::PartOf(const LaneType& lane) const {
  double all = lane.share->weight;
  for (const LaneType& one : lanes_) {
    if (&one != &lane && one.depth() > 0) all += one.share->weight;
  }
  return lane.share->weight / all;
}

template <typename Item>
absl::Status ModelQueue<Item>::CheckLimit(const char* unit, const LaneType& lane, int64_t waiting,
                                          int64_t own, int64_t added, int64_t limit) const {
  if (added <= limit && waiting <= limit - added) return absl::OkStatus();
  const double part = PartOf(lane);
  if (part < 1 && static_cast<double>(own + added) <= part * static_cast<double>(limit)) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("the queue of ", options_.name, " is full: ", waiting, " ", unit,
                   " wait, the request adds ", added, ", the limit is ", limit));
}

template <typename Item>
absl::Status ModelQueue<Item>::Push(absl::Span<const ItemPointer> items, int64_t now_ns) {
  if (items.empty()) return absl::OkStatus();
  int64_t tokens = 0;
  int64_t bytes = 0;
  for (const ItemPointer& item : items) {
    tokens += item->shape.tokens;
    bytes += item->shape.bytes;
  }
  const uint64_t priority = items.front()->shape.priority;
  LaneType& lane = LaneOf(items.front()->shape);
  // A split request counts once: its parts are an implementation detail.
  RETURN_IF_ERROR(CheckLimit("requests", lane, depth(), lane.depth(), 1, options_.max_requests));
  if (depth() >= options_.always_admitted) {
    RETURN_IF_ERROR(CheckLimit("tokens", lane, tokens_, lane.tokens, tokens, options_.max_tokens));
  }
  if (bytes > options_.max_bytes) {  // no later time has room for it
    return absl::InvalidArgumentError(absl::StrCat("the request has ", bytes,
                                                   " bytes, the queue of ", options_.name,
                                                   " takes at most ", options_.max_bytes));
  }
  RETURN_IF_ERROR(CheckLimit("bytes", lane, bytes_, lane.bytes, bytes, options_.max_bytes));
  RETURN_IF_ERROR(CheckWait(lane, priority));

  // All or none, also when memory runs out: from here on nothing is allocated.
  std::list<ItemPointer> added(items.begin(), items.end());
  lane.tokens_by_priority.try_emplace(priority, 0);
  if (empty()) rate_.OnEmpty();
  while (!added.empty()) {
    Item& item = *added.front();
    item.place.queue = this;
    item.place.lane = &lane;
    item.place.enqueued_ns = now_ns;
    item.place.arrival = next_arrival_++;
    if (item.shape.deadline_ns != kNoDeadline) ++with_deadline_;
    CountTokens(item, 1);
    shares_.use().Enter(*lane.share);
    Link(added, added.begin());
  }
  ReportDepth();
  return absl::OkStatus();
}

template <typename Item>
absl::Status ModelQueue<Item>::CheckWait(const LaneType& lane, uint64_t priority) const {
  const double rate = rate_.tokens_per_second();
  if (options_.max_wait_ns == 0 || rate == 0 || empty()) return absl::OkStatus();
  int64_t own = -lane.held_tokens, in_front = 0;
  for (const auto& [number, tokens] : lane.tokens_by_priority) {
    if (number <= priority) own += tokens;
  }
  for (const LaneType& one : lanes_) in_front += one.tokens - one.held_tokens;
  in_front += own - (lane.tokens - lane.held_tokens);
  // Others go before it by their weights alone.
  const double part = PartOf(lane);
  if (part < 1) {
    in_front = std::min<int64_t>(in_front, std::llround(static_cast<double>(own) / part));
  }
  const double most_seconds = static_cast<double>(options_.max_wait_ns) * 1e-9;
  const int64_t most_tokens =
      std::max<int64_t>(std::llround(rate * most_seconds), options_.always_waiting_tokens);
  if (in_front <= most_tokens) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the queue of ", options_.name, " is full: ", in_front, " tokens wait, which takes ",
      static_cast<double>(in_front) / rate, " s at the present rate, the limit is ",
      static_cast<double>(most_tokens) / rate, " s"));
}

template <typename Item>
void ModelQueue<Item>::CountTokens(const Item& item, int sign) {
  LaneType& lane = *item.place.lane;
  const int64_t tokens = sign * item.shape.tokens, bytes = sign * item.shape.bytes;
  if (item.place.held != 0) lane.held_tokens += tokens;
  tokens_ += tokens;
  lane.tokens += tokens;
  bytes_ += bytes;
  lane.bytes += bytes;
  // It was erased where the remaining items have no tokens.
  const auto of_priority = lane.tokens_by_priority.find(item.shape.priority);
  if (of_priority == lane.tokens_by_priority.end()) return;
  of_priority->second += tokens;
  if (sign < 0 && of_priority->second == 0) lane.tokens_by_priority.erase(of_priority);
}

template <typename Item>
void ModelQueue<Item>::OnFinished(int64_t tokens, int64_t run_ns) {
  const int64_t at_once = options_.max_running == 0
                              ? options_.streams
                              : std::min(options_.streams, options_.max_running);
  rate_.OnFinished(tokens, run_ns, at_once);
}

template <typename Item>
void ModelQueue<Item>::Link(std::list<ItemPointer>& from,
                            typename std::list<ItemPointer>::iterator position) {
  Item& item = **position;
  std::list<ItemPointer>& items = item.place.lane->items;
  const auto rank = [](const Item& one) { return one.place.aged ? 0 : one.shape.priority; };
  const auto goes_before = [&](const Item& a, const Item& b) {
    return std::pair(rank(a), a.place.arrival) < std::pair(rank(b), b.place.arrival);
  };
  auto next = items.end();
  while (next != items.begin() && goes_before(item, **std::prev(next))) --next;
  item.place.position = position;
  items.splice(next, from, position);
  ++ready_;
}

template <typename Item>
void ModelQueue<Item>::Age(LaneType& lane, int64_t now_ns) {
  // Items of one priority are in the order in which they came.
  if (lane.tokens_by_priority.size() < 2 || now_ns < lane.look_again_ns) return;
  lane.look_again_ns = now_ns + kLongQueueWaitNs / 16;
  for (auto it = lane.items.begin(); it != lane.items.end();) {
    const auto position = it++;
    Item& item = **position;
    if (item.place.aged || now_ns - item.place.enqueued_ns < kLongQueueWaitNs) continue;
    item.place.aged = true;
    std::list<ItemPointer> moved;
    moved.splice(moved.end(), lane.items, position);
    --ready_;
    Link(moved, moved.begin());
  }
}

template <typename Item>
void ModelQueue<Item>::Unlink(const ItemPointer& item, std::list<ItemPointer>& to) {
  Item& gone = *item;
  LaneType& lane = *gone.place.lane;
  CountTokens(gone, -1);
  if (gone.shape.deadline_ns != kNoDeadline) --with_deadline_;
  const bool held = gone.place.held != 0;
  to.splice(to.end(), held ? held_ : lane.items, gone.place.position);
  --(held ? lane.held : ready_);
  shares_.use().Leave(*lane.share);
  gone.place.queue = nullptr;
  gone.place.lane = nullptr;
}

template <typename Item>
void ModelQueue<Item>::Remove(const ItemPointer& item, const absl::Status& why, Dropped& dropped) {
  REPRISE_CHECK(item->place.queue == this);
  item->place.why = why;
  Unlink(item, dropped);
  ReportDepth();
}

template <typename Item>
void ModelQueue<Item>::RemoveExpired(std::list<ItemPointer>& items, int64_t now_ns,
                                     Dropped& dropped) {
  for (auto it = items.begin(); it != items.end();) {
    const ItemPointer& item = *it++;
    if (item->shape.deadline_ns > now_ns) continue;
    item->place.why = StatusWithoutFail(absl::StatusCode::kDeadlineExceeded, [&] {
      const int64_t waited_us = (now_ns - item->place.enqueued_ns) / 1000;
      return absl::DeadlineExceededError(absl::StrCat("the deadline passed after ", waited_us,
                                                      " us in the queue of ", options_.name));
    });
    Unlink(item, dropped);
  }
}

template <typename Item>
void ModelQueue<Item>::RemoveExpired(int64_t now_ns, Dropped& dropped) {
  if (with_deadline_ == 0) return;
  const size_t before = dropped.size();
  for (LaneType& lane : lanes_) RemoveExpired(lane.items, now_ns, dropped);
  RemoveExpired(held_, now_ns, dropped);
  if (dropped.size() != before) ReportDepth();
}

template <typename Item>
void ModelQueue<Item>::RemoveAll(const absl::Status& why, Dropped& dropped) {
  const auto remove = [&](std::list<ItemPointer>& items) {
    while (!items.empty()) {
      items.front()->place.why = why;
      Unlink(items.front(), dropped);
    }
  };
  for (LaneType& lane : lanes_) remove(lane.items);
  remove(held_);
  ReportDepth();
}

template <typename Item>
int64_t ModelQueue<Item>::earliest_deadline_ns() const {
  int64_t earliest = kNoDeadline;
  if (with_deadline_ == 0) return earliest;
  const auto look = [&](const std::list<ItemPointer>& items) {
    for (const ItemPointer& item : items) earliest = std::min(earliest, item->shape.deadline_ns);
  };
  for (const LaneType& lane : lanes_) look(lane.items);
  look(held_);
  return earliest;
}

template <typename Item>
typename ModelQueue<Item>::Batch ModelQueue<Item>::Form() const {
  static_assert(BatchBuilder<typename Item::Builder, Item>);
  const LaneType& front = FrontLane();
  const ItemPointer& head = front.items.front();
  Batch batch;
  batch.items.push_back(head);
  if (!options_.start_batch) return batch;
  batch.builder = options_.start_batch();
  REPRISE_CHECK(batch.builder->TryAdd(*head));

  if (ready_ == 1) return batch;

  std::vector<const ItemPointer*> candidates;
  std::vector<const Item*> waiting;
  const auto offer = [&](const LaneType& lane) {
    for (auto it = lane.items.begin(); it != lane.items.end() && waiting.size() < kBatchWindow;
         ++it) {
      candidates.push_back(&*it);
      waiting.push_back(it->get());
    }
  };
  offer(front);
  for (const LaneType& lane : lanes_) {
    if (&lane != &front) offer(lane);
  }
  for (const size_t position : batch.builder->Order(waiting)) {
    if (position == 0) continue;
    if (batch.builder->full()) break;
    const ItemPointer& item = *candidates[position];
    if (batch.builder->TryAdd(*item)) batch.items.push_back(item);
  }
  return batch;
}

template <typename Item>
bool ModelQueue<Item>::WorthWaiting(const Batch& batch) const {
  if (batch.builder == nullptr || batch.builder->full()) return false;
  int64_t rows = 0;
  for (const ItemPointer& item : batch.items) rows += item->shape.rows;
  return options_.enough_rows == 0 || rows < options_.enough_rows;
}

template <typename Item>
absl::StatusOr<typename ModelQueue<Item>::Start> ModelQueue<Item>::TryStart(
    int64_t now_ns, int64_t& wake_ns, absl::FunctionRef<Release()> make_release, int64_t number,
    Batch& batch) const {
  return WithinMemory([&] { return absl::StrCat("a batch of ", options_.name); },
                      [&]() -> absl::StatusOr<Start> {
                        batch = Form();
                        if (options_.delay_ns > 0 && WorthWaiting(batch)) {
                          const int64_t ready_ns =
                              batch.items.front()->place.enqueued_ns + options_.delay_ns;
                          if (now_ns < ready_ns) {
                            wake_ns = std::min(wake_ns, ready_ns);
                            return Start::kLater;
                          }
                        }
                        const auto ready = [release = make_release(), number](absl::Status status) {
                          release(number, status);
                        };
                        std::list<RunningBatch<Item>> run(1);
                        run.front().name = options_.name;
                        const bool starts = batch.builder == nullptr || batch.builder->Start(ready);
                        if (!starts) return Start::kHeld;
                        batch.run = std::move(run);
                        return Start::kNow;
                      });
}

template <typename Item>
std::optional<typename ModelQueue<Item>::Batch> ModelQueue<Item>::Take(
    int64_t now_ns, int64_t& wake_ns, absl::FunctionRef<Release()> make_release, Dropped& dropped) {
  for (LaneType& lane : lanes_) Age(lane, now_ns);
  while (!empty()) {
    Batch batch;
    const int64_t number = next_number_++;
    const absl::StatusOr<Start> start = TryStart(now_ns, wake_ns, make_release, number, batch);
    if (!start.ok()) {
      // Its release may still be called: it finds nothing under this number.
      Remove(FrontLane().items.front(), start.status(), dropped);
      continue;
    }
    if (*start == Start::kLater) return std::nullopt;
    if (*start == Start::kNow) {
      RunningBatch<Item>& run = batch.run.front();
      run.taken_ns = now_ns;
      run.max_ns = options_.max_run_ns;
      int64_t tokens = 0;
      batch.items.front()->place.lane->turn = shares_.NextTurn();
      for (const ItemPointer& item : batch.items) {
        tokens += item->shape.tokens;
        shares_.use().Serve(*item->place.lane->share, item->shape.tokens);
        Unlink(item, run.wanted);
        item->place.run = &run;
      }
      rate_.OnTake(now_ns, tokens, !empty());
      ReportDepth();
      return batch;
    }
    for (const ItemPointer& item : batch.items) {
      LaneType& lane = *item->place.lane;
      item->place.held = number;
      lane.held_tokens += item->shape.tokens;
      ++lane.held;
      --ready_;
      held_.splice(held_.end(), lane.items, item->place.position);
    }
  }
  return std::nullopt;
}

template <typename Item>
void ModelQueue<Item>::PutBack(int64_t number, const absl::Status& status, Dropped& dropped) {
  if (empty()) rate_.OnEmpty();
  for (auto it = held_.begin(); it != held_.end();) {
    const auto position = it++;
    const ItemPointer& item = *position;
    if (item->place.held != number) continue;
    if (!status.ok()) {
      item->place.why = status;
      Unlink(item, dropped);
      continue;
    }
    item->place.held = 0;
    item->place.lane->held_tokens -= item->shape.tokens;
    --item->place.lane->held;
    Link(held_, position);
  }
  if (!status.ok()) ReportDepth();
}

}  // namespace reprise
