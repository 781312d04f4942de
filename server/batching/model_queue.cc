#include "server/batching/model_queue.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <numeric>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

// How many waiting items are looked at for one batch: bounds the time under the scheduler's lock.
constexpr size_t kWindow = 256;

}  // namespace

std::vector<size_t> BatchBuilder::Order(absl::Span<const WorkItem* const> waiting) const {
  const auto length = [](const WorkItem& item) {
    return item.shape.tokens / std::max<int64_t>(1, item.shape.rows);
  };
  const int64_t head_length = length(*waiting[0]);
  std::vector<size_t> order(waiting.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // Among equals those that waited longest.
  std::stable_sort(order.begin() + 1, order.end(), [&](size_t a, size_t b) {
    return std::abs(length(*waiting[a]) - head_length) <
           std::abs(length(*waiting[b]) - head_length);
  });
  return order;
}

void ModelQueue::ReportDepth() const {
  if (options_.on_depth) WhereMemoryAllows([&] { options_.on_depth(depth()); });
}

absl::Status ModelQueue::Push(absl::Span<const Item> items, int64_t now_ns) {
  int64_t tokens = 0;
  int64_t bytes = 0;
  for (const Item& item : items) {
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

  // All or none, also where there is no memory: from here on nothing is asked of it.
  std::list<Item> added(items.begin(), items.end());
  while (!added.empty()) {
    WorkItem& item = *added.front();
    item.place.queue = this;
    item.place.enqueued_ns = now_ns;
    item.place.arrival = next_arrival_++;
    if (item.shape.deadline_ns != kNoDeadline) ++with_deadline_;
    Link(added, added.begin());
  }
  tokens_ += tokens;
  bytes_ += bytes;
  ReportDepth();
  return absl::OkStatus();
}

void ModelQueue::Link(std::list<Item>& from, std::list<Item>::iterator position) {
  WorkItem& item = **position;
  const auto goes_before = [](const WorkItem& a, const WorkItem& b) {
    return std::tie(a.shape.priority, a.place.arrival) <
           std::tie(b.shape.priority, b.place.arrival);
  };
  auto next = items_.end();
  while (next != items_.begin() && goes_before(item, **std::prev(next))) --next;
  item.place.position = position;
  items_.splice(next, from, position);
}

void ModelQueue::Unlink(const Item& item, std::list<Item>& to) {
  WorkItem& gone = *item;
  tokens_ -= gone.shape.tokens;
  bytes_ -= gone.shape.bytes;
  if (gone.shape.deadline_ns != kNoDeadline) --with_deadline_;
  gone.place.queue = nullptr;
  to.splice(to.end(), gone.place.held == 0 ? items_ : held_, gone.place.position);
}

void ModelQueue::Remove(const Item& item, const absl::Status& why, Dropped& dropped) {
  REPRISE_CHECK(item->place.queue == this);
  item->place.why = why;
  Unlink(item, dropped);
  ReportDepth();
}

void ModelQueue::RemoveExpired(std::list<Item>& items, int64_t now_ns, Dropped& dropped) {
  for (auto it = items.begin(); it != items.end();) {
    const Item& item = *it++;
    if (item->shape.deadline_ns > now_ns) continue;
    item->place.why = StatusWithoutFail(absl::StatusCode::kDeadlineExceeded, [&] {
      const int64_t waited_us = (now_ns - item->place.enqueued_ns) / 1000;
      return absl::DeadlineExceededError(absl::StrCat("the deadline passed after ", waited_us,
                                                      " us in the queue of ", options_.name));
    });
    Unlink(item, dropped);
  }
}

void ModelQueue::RemoveExpired(int64_t now_ns, Dropped& dropped) {
  if (with_deadline_ == 0) return;
  const size_t before = dropped.size();
  RemoveExpired(items_, now_ns, dropped);
  RemoveExpired(held_, now_ns, dropped);
  if (dropped.size() != before) ReportDepth();
}

void ModelQueue::RemoveAll(const absl::Status& why, Dropped& dropped) {
  for (std::list<Item>* items : {&items_, &held_}) {
    while (!items->empty()) {
      items->front()->place.why = why;
      Unlink(items->front(), dropped);
    }
  }
  ReportDepth();
}

int64_t ModelQueue::earliest_deadline_ns() const {
  int64_t earliest = kNoDeadline;
  if (with_deadline_ == 0) return earliest;
  for (const std::list<Item>* items : {&items_, &held_}) {
    for (const Item& item : *items) earliest = std::min(earliest, item->shape.deadline_ns);
  }
  return earliest;
}

ModelQueue::Batch ModelQueue::Form() const {
  const Item& head = items_.front();
  Batch batch;
  batch.items.push_back(head);
  if (!options_.start_batch) return batch;
  batch.builder = options_.start_batch();
  REPRISE_CHECK(batch.builder->TryAdd(*head));

  if (items_.size() == 1) return batch;

  std::vector<const Item*> candidates;
  std::vector<const WorkItem*> waiting;
  for (auto it = items_.begin(); it != items_.end() && waiting.size() < kWindow; ++it) {
    candidates.push_back(&*it);
    waiting.push_back(it->get());
  }
  for (const size_t position : batch.builder->Order(waiting)) {
    if (position == 0) continue;
    if (batch.builder->full()) break;
    const Item& item = *candidates[position];
    if (batch.builder->TryAdd(*item)) batch.items.push_back(item);
  }
  return batch;
}

bool ModelQueue::WorthWaiting(const Batch& batch) const {
  if (batch.builder == nullptr || batch.builder->full()) return false;
  int64_t rows = 0;
  for (const Item& item : batch.items) rows += item->shape.rows;
  return options_.enough_rows == 0 || rows < options_.enough_rows;
}

absl::StatusOr<ModelQueue::Start> ModelQueue::TryStart(int64_t now_ns, int64_t& wake_ns,
                                                       absl::FunctionRef<Release()> make_release,
                                                       int64_t number, Batch& batch) const {
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
                        const bool starts = batch.builder == nullptr || batch.builder->Start(ready);
                        return starts ? Start::kNow : Start::kHeld;
                      });
}

std::optional<ModelQueue::Batch> ModelQueue::Take(int64_t now_ns, int64_t& wake_ns,
                                                  absl::FunctionRef<Release()> make_release,
                                                  Dropped& dropped) {
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
      std::list<Item> taken;
      for (const Item& item : batch.items) Unlink(item, taken);
      ReportDepth();
      return batch;
    }
    for (const Item& item : batch.items) {
      item->place.held = number;
      held_.splice(held_.end(), items_, item->place.position);
    }
  }
  return std::nullopt;
}

void ModelQueue::PutBack(int64_t number, const absl::Status& status, Dropped& dropped) {
  for (auto it = held_.begin(); it != held_.end();) {
    const auto position = it++;
    const Item& item = *position;
    if (item->place.held != number) continue;
    if (!status.ok()) {
      item->place.why = status;
      Unlink(item, dropped);
      continue;
    }
    item->place.held = 0;
    Link(held_, position);
  }
  if (!status.ok()) ReportDepth();
}

}  // namespace reprise
