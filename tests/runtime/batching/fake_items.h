// Items and batches for tests of queues and streams, on a clock that the test moves.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/batching/scheduler-inl.h"

namespace reprise {

class TestBuilder;

class FakeItem : public WorkItem<FakeItem> {
 public:
  using Builder = TestBuilder;
  explicit FakeItem(std::string name) : name(std::move(name)) {}
  virtual ~FakeItem() = default;
  virtual void Drop(const absl::Status& why) {
    ++drops;
    dropped = why;
  }
  const std::string name;
  int64_t length = 1;
  int64_t group = 0;
  int drops = 0;
  absl::Status dropped;
};

inline std::shared_ptr<FakeItem> Item(std::string name, int64_t rows, int64_t length) {
  auto item = std::make_shared<FakeItem>(std::move(name));
  item->shape.rows = rows;
  item->length = length;
  item->shape.tokens = rows * length;
  item->shape.bytes = rows * length * 8;
  return item;
}

inline int64_t Bucket(int64_t size) {
  int64_t bucket = 1;
  while (bucket < size) bucket *= 2;
  return bucket;
}

// Buckets are powers of two: at most 8 rows, length 16 to 512, 1024 tokens. Items share a replay if
// that costs at most twice the sum of their costs alone; one that has no bucket goes alone.
class TestBuilder {
 public:
  virtual ~TestBuilder() = default;
  virtual bool TryAdd(const FakeItem& item) {
    const auto own = Cost(item.shape.rows, item.length);
    if (rows_ > 0) {
      const auto shared = Cost(rows_ + item.shape.rows, std::max(length_, item.length));
      if (item.group != group_ || !own || !shared || *shared > 2 * (alone_ + *own)) return false;
    }
    group_ = item.group;
    rows_ += item.shape.rows;
    length_ = std::max(length_, item.length);
    alone_ += own.value_or(0);
    return true;
  }
  // Items of a length most like the first one's go first; among equals those that waited longest.
  std::vector<size_t> Order(absl::Span<const FakeItem* const> waiting) const {
    std::vector<size_t> order(waiting.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto distance = [&](size_t i) {
      return std::abs(waiting[i]->length - waiting[0]->length);
    };
    std::stable_sort(order.begin() + 1, order.end(),
                     [&](size_t a, size_t b) { return distance(a) < distance(b); });
    return order;
  }
  bool full() const { return !Cost(rows_ + 1, length_); }
  virtual bool Start(std::function<void(absl::Status)>) { return true; }

 private:
  static std::optional<int64_t> Cost(int64_t rows, int64_t length) {
    const int64_t cost = Bucket(rows) * std::max<int64_t>(16, Bucket(length));
    if (rows > 8 || length > 512 || cost > 1024) return std::nullopt;
    return cost;
  }
  int64_t group_ = 0;
  int64_t rows_ = 0;
  int64_t length_ = 0;
  int64_t alone_ = 0;
};

using TestQueue = ModelQueue<FakeItem>;
using TestScheduler = Scheduler<FakeItem>;

inline QueueOptions<FakeItem> TestOptions(std::string name = "m") {
  return {.name = std::move(name), .start_batch = [] { return std::make_unique<TestBuilder>(); }};
}

inline std::vector<std::string> Names(const std::optional<TestScheduler::Batch>& batch) {
  std::vector<std::string> names;
  if (!batch) return names;
  for (const auto& item : batch->items) names.push_back(item->name);
  return names;
}

class SchedulerTest : public ::testing::Test {
 protected:
  std::shared_ptr<FakeItem> Submit(const std::shared_ptr<TestQueue>& queue,
                                   std::shared_ptr<FakeItem> item) {
    last_status = scheduler.Submit(queue, {item});
    return item;
  }
  FakeClock clock;
  TestScheduler scheduler{clock};
  absl::Status last_status;
};

}  // namespace reprise
