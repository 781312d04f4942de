// The methods of ModelQueue.
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/batching/model_queue.h"

namespace reprise {

// How many waiting items are looked at for one batch: bounds the time under the scheduler's lock.
inline constexpr size_t kBatchWindow = 256;

template <typename Item>
void ModelQueue<Item>::ReportDepth() const {
  if (options_.on_depth) WhereMemoryAllows([&] { options_.on_depth(depth()); });
}

template <typename Item>
absl::Status ModelQueue<Item>::Push(absl::Span<const ItemPointer> items, int64_t now_ns) {
  int64_t tokens = 0;
  int64_t bytes = 0;
  for (const ItemPointer& item : items) {
    tokens += item->shape.tokens;
    bytes += item->shape.bytes;
  }
  auto check = [&](const char* unit, int64_t waiting, int64_t added, int64_t limit) {
    if (added <= limit && waiting <= limit - added) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat("the queue of ", options_.name, " is full: ", waiting, " ", unit,
                     " wait, the request adds ", added, ", the limit is ", limit));
  };
  // A split request counts once: its parts are an artifact of ours.
  RETURN_IF_ERROR(check("requests", depth(), 1, options_.max_requests));
  if (depth() >= options_.always_admitted) {
    RETURN_IF_ERROR(check("tokens", tokens_, tokens, options_.max_tokens));
  }
  RETURN_IF_ERROR(check("bytes", bytes_, bytes, options_.max_bytes));
  if (!items.empty()) RETURN_IF_ERROR(CheckWait(items.front()->shape.priority));

  // All or none, also where there is no memory: from here on nothing is asked of it.
  std::list<ItemPointer> added(items.begin(), items.end());
  for (const ItemPointer& item : items) tokens_by_priority_.try_emplace(item->shape.priority, 0);
  if (items_.empty()) rate_.OnEmpty();
  while (!added.empty()) {
    Item& item = *added.front();
    item.place.queue = this;
    item.place.enqueued_ns = now_ns;
    item.place.arrival = next_arrival_++;
    if (item.shape.deadline_ns != kNoDeadline) ++with_deadline_;
    CountTokens(item, 1);
    Link(added, added.begin());
  }
  bytes_ += bytes;
  ReportDepth();
  return absl::OkStatus();
}

template <typename Item>
absl::Status ModelQueue<Item>::CheckWait(uint64_t priority) const {
  const double rate = rate_.tokens_per_second();
  if (options_.max_wait_ns == 0 || rate == 0 || items_.empty()) return absl::OkStatus();
  int64_t in_front = -held_tokens_;
  for (const auto& [number, tokens] : tokens_by_priority_) {
    if (number <= priority) in_front += tokens;
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
  if (item.place.held != 0) held_tokens_ += sign * item.shape.tokens;
  tokens_ += sign * item.shape.tokens;
  // Gone where all that are left have no tokens.
  const auto of_priority = tokens_by_priority_.find(item.shape.priority);
  if (of_priority == tokens_by_priority_.end()) return;
  of_priority->second += sign * item.shape.tokens;
  if (sign < 0 && of_priority->second == 0) tokens_by_priority_.erase(of_priority);
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
  const auto goes_before = [](const Item& a, const Item& b) {
    return std::tie(a.shape.priority, a.place.arrival) <
           std::tie(b.shape.priority, b.place.arrival);
  };
  auto next = items_.end();
  while (next != items_.begin() && goes_before(item, **std::prev(next))) --next;
  item.place.position = position;
  items_.splice(next, from, position);
}

template <typename Item>
void ModelQueue<Item>::Unlink(const ItemPointer& item, std::list<ItemPointer>& to) {
  Item& gone = *item;
  CountTokens(gone, -1);
  bytes_ -= gone.shape.bytes;
  if (gone.shape.deadline_ns != kNoDeadline) --with_deadline_;
  gone.place.queue = nullptr;
  to.splice(to.end(), gone.place.held == 0 ? items_ : held_, gone.place.position);
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
  RemoveExpired(items_, now_ns, dropped);
  RemoveExpired(held_, now_ns, dropped);
  if (dropped.size() != before) ReportDepth();
}

template <typename Item>
void ModelQueue<Item>::RemoveAll(const absl::Status& why, Dropped& dropped) {
  for (std::list<ItemPointer>* items : {&items_, &held_}) {
    while (!items->empty()) {
      items->front()->place.why = why;
      Unlink(items->front(), dropped);
    }
  }
  ReportDepth();
}

template <typename Item>
int64_t ModelQueue<Item>::earliest_deadline_ns() const {
  int64_t earliest = kNoDeadline;
  if (with_deadline_ == 0) return earliest;
  for (const std::list<ItemPointer>* items : {&items_, &held_}) {
    for (const ItemPointer& item : *items) earliest = std::min(earliest, item->shape.deadline_ns);
  }
  return earliest;
}

template <typename Item>
typename ModelQueue<Item>::Batch ModelQueue<Item>::Form() const {
  static_assert(BatchBuilder<typename Item::Builder, Item>);
  const ItemPointer& head = items_.front();
  Batch batch;
  batch.items.push_back(head);
  if (!options_.start_batch) return batch;
  batch.builder = options_.start_batch();
  REPRISE_CHECK(batch.builder->TryAdd(*head));

  if (items_.size() == 1) return batch;

  std::vector<const ItemPointer*> candidates;
  std::vector<const Item*> waiting;
  for (auto it = items_.begin(); it != items_.end() && waiting.size() < kBatchWindow; ++it) {
    candidates.push_back(&*it);
    waiting.push_back(it->get());
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
  while (!items_.empty()) {
    Batch batch;
    const int64_t number = next_number_++;
    const absl::StatusOr<Start> start = TryStart(now_ns, wake_ns, make_release, number, batch);
    if (!start.ok()) {
      // Its release may still be called: it finds nothing under this number.
      Remove(items_.front(), start.status(), dropped);
      continue;
    }
    if (*start == Start::kLater) return std::nullopt;
    if (*start == Start::kNow) {
      RunningBatch<Item>& run = batch.run.front();
      run.taken_ns = now_ns;
      run.max_ns = options_.max_run_ns;
      int64_t tokens = 0;
      for (const ItemPointer& item : batch.items) {
        tokens += item->shape.tokens;
        Unlink(item, run.wanted);
        item->place.run = &run;
      }
      rate_.OnTake(now_ns, tokens, !items_.empty());
      ReportDepth();
      return batch;
    }
    for (const ItemPointer& item : batch.items) {
      item->place.held = number;
      held_tokens_ += item->shape.tokens;
      held_.splice(held_.end(), items_, item->place.position);
    }
  }
  return std::nullopt;
}

template <typename Item>
void ModelQueue<Item>::PutBack(int64_t number, const absl::Status& status, Dropped& dropped) {
  if (items_.empty()) rate_.OnEmpty();
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
    held_tokens_ -= item->shape.tokens;
    Link(held_, position);
  }
  if (!status.ok()) ReportDepth();
}

}  // namespace reprise
