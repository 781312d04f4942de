// The batching scheduler by itself, for work of the program's own: squares of numbers, up to eight
// at a time. It knows neither requests nor engines.
//
//   own_batches
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <numeric>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/batching/dispatcher.h"
#include "runtime/batching/scheduler-inl.h"

namespace {

class SquareBatch;

class Square : public reprise::WorkItem<Square> {
 public:
  using Builder = SquareBatch;
  explicit Square(int number) : number(number) {}
  void Drop(const absl::Status&) { dropped = true; }

  const int number;
  std::atomic<int> answer{0};
  std::atomic<bool> dropped{false};
};

// Decides which requests go together: here all that wait, in their order.
class SquareBatch {
 public:
  bool TryAdd(const Square&) { return size_ < kMost && ++size_ > 0; }
  std::vector<size_t> Order(absl::Span<const Square* const> waiting) const {
    std::vector<size_t> order(waiting.size());
    std::iota(order.begin(), order.end(), size_t{0});
    return order;
  }
  bool full() const { return size_ == kMost; }
  bool Start(const std::function<void(absl::Status)>&) { return true; }

 private:
  static constexpr int kMost = 8;
  int size_ = 0;
};

}  // namespace

int main() {
  reprise::SteadyClock clock;
  reprise::Scheduler<Square> scheduler(clock);
  std::atomic<size_t> largest{0};
  reprise::Dispatcher<Square> dispatcher(scheduler, /*streams=*/2,
                                         [&](int, reprise::Scheduler<Square>::Batch& batch) {
                                           largest = std::max(largest.load(), batch.items.size());
                                           for (const auto& item : batch.items)
                                             item->answer = item->number * item->number;
                                         });
  std::vector<std::shared_ptr<Square>> items;
  {
    const auto queue =
        scheduler.AddModel({.name = "squares",
                            .start_batch = [] { return std::make_unique<SquareBatch>(); },
                            .delay_ns = 20'000'000});
    for (int number = 0; number < 40; ++number) {
      items.push_back(std::make_shared<Square>(number));
      if (!scheduler.Submit(queue, {items.data() + number, 1}).ok()) return 1;
    }
    if (!scheduler.WaitUntilIdle(std::chrono::seconds(30))) return 1;
  }
  scheduler.Shutdown(absl::CancelledError("the program ends"));
  const bool right = std::all_of(items.begin(), items.end(), [](const auto& item) {
    return item->answer == item->number * item->number;
  });
  std::printf("%s, %s\n", right ? "all are right" : "some are wrong",
              largest > 1 && largest <= 8 ? "in batches" : "one by one");
  return right ? 0 : 1;
}
