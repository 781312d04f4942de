// Every request is answered exactly once, whichever of its allocations fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>

#include "runtime/base/memory_net.h"
#include "runtime/engine/replay/helper_pool.h"
#include "server/rest/json_document.h"
#include "tests/server/requests/inference_fixture.h"

namespace {

// Allocations of this thread that may still succeed; below 0: all.
thread_local int64_t allowed = -1;
thread_local bool for_good = false;
thread_local bool refused = false;
thread_local int64_t made = 0;  // allocations of this thread

bool Refuses() {
  ++made;
  if (allowed < 0) return false;
  if (allowed > 0) {
    --allowed;
    return false;
  }
  if (!for_good) allowed = -1;
  return refused = true;
}

void* Allocate(size_t bytes, size_t alignment) {
  if (Refuses()) throw std::bad_alloc();
  const size_t whole = (bytes + alignment - 1) / alignment * alignment;
  void* data = std::aligned_alloc(alignment, whole == 0 ? alignment : whole);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

}  // namespace

void* operator new(size_t bytes) { return Allocate(bytes, alignof(std::max_align_t)); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return Allocate(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, size_t) noexcept { std::free(data); }
void operator delete(void* data, std::align_val_t) noexcept { std::free(data); }
void operator delete(void* data, size_t, std::align_val_t) noexcept { std::free(data); }

namespace reprise {
namespace {

// Lets the next `allowed` allocations of the thread succeed, and then one fail, or all.
class ScarceMemory {
 public:
  ScarceMemory(int64_t count, bool all) {
    refused = false;
    for_good = all;
    allowed = count;
  }
  ~ScarceMemory() { allowed = -1; }
  bool any_failed() const { return refused; }
};

class ScarceMemoryTest : public InferenceTest {
 protected:
  // Runs a short request and one that is split in two, in one queue, and then as many replays as
  // they take, where `count` allocations succeed. Whether any failed.
  bool RunWith(int64_t count, bool all) {
    auto one = Make(1, 20), split = Make(40, 16);
    bool failed = false;
    {
      const ScarceMemory scarce(count, all);
      Start(*one);
      Start(*split);
      while (RunNext() > 0) {
      }
      failed = scarce.any_failed();
    }
    for (const Asked* asked : {one.get(), split.get()}) {
      EXPECT_EQ(asked->results.size(), 1u) << count << " allocations succeeded";
      if (!asked->done()) continue;
      EXPECT_TRUE(asked->status().ok() || absl::IsResourceExhausted(asked->status()))
          << count << ": " << asked->status();
      EXPECT_TRUE(failed || asked->status().ok()) << asked->status();
    }
    EXPECT_TRUE(server_->scheduler.WaitUntilIdle(std::chrono::nanoseconds(0))) << count;
    EXPECT_EQ(server_->events.depth, 0) << count;
    return failed;
  }
};

TEST_F(ScarceMemoryTest, EachRequestIsAnsweredOnceWhicheverAllocationFails) {
  RunWith(-1, false);
  for (const bool all : {false, true}) {
    int64_t count = 0;
    while (RunWith(count, all)) {
      ++count;
      if (HasFailure()) return;
    }
    EXPECT_GT(count, 50) << "hardly anything failed";
  }
}

TEST(JsonWithoutMemoryTest, ATextIsReadOrRefusedWhicheverAllocationFails) {
  // The second is parsed twice, since its number is no JSON.
  for (const std::string& text :
       {std::string(R"({"a": [1, "text"]})"), std::string(R"([NaN, {}])")}) {
    for (const bool all : {false, true}) {
      int64_t count = 0;
      for (bool failed = true; failed && count < 1000; ++count) {
        MemoryBudget budget(1 << 20);
        absl::Status read;
        {
          const ScarceMemory scarce(count, all);
          read = WithinMemory([] { return "the request"; },
                              [&] {
                                JsonDocument document(budget);
                                return document.Parse(text).status();
                              });
          failed = scarce.any_failed();
        }
        ASSERT_TRUE(read.ok() || (failed && absl::IsResourceExhausted(read))) << count << read;
        ASSERT_EQ(budget.used(), 0);
      }
      EXPECT_GT(count, 5) << "hardly anything failed";
    }
  }
}

class RequestCostTest : public InferenceTest {};

// 23 and 63 were counted; a stage that asks for memory shows here.
TEST_F(RequestCostTest, SmallRequestTakesAFewAllocationsOnItsWay) {
  for (int i = 0; i < 2; ++i) {
    const auto first = Ask(1, 20);
    RunNext();
  }
  auto asked = Make(1, 20);
  made = 0;
  Start(*asked);
  const int64_t to_queue = made;
  RunNext();
  const int64_t in_all = made;
  ASSERT_TRUE(asked->status().ok()) << asked->status();
  EXPECT_LE(to_queue, 25);
  EXPECT_LE(in_all, 66);
}

TEST_F(ScarceMemoryTest, CaptureThatFindsNoMemoryIsTriedAgain) {
  bool captured = false;
  for (int64_t count = 0; !captured && count < 3000; count = count * 5 / 4 + 1) {
    auto asked = Make(1, 300);
    {
      const ScarceMemory scarce(count, true);
      Start(*asked);
      while (RunNext() > 0) {
      }
    }
    ASSERT_EQ(asked->results.size(), 1u) << count;
    ASSERT_TRUE(asked->status().ok() || absl::IsResourceExhausted(asked->status()))
        << asked->status();
  }
  auto asked = Ask(1, 300);
  RunNext();
  ASSERT_EQ(asked->results.size(), 1u);
  EXPECT_TRUE(asked->status().ok()) << asked->status();
}

TEST(ScarceMemoryHelperPoolTest, PoolHasAsManyHelpersAsThereIsMemoryForOrThrows) {
  constexpr int kCores = 5;
  int thrown = 0, narrow = 0;
  for (const bool all : {false, true}) {
    bool failed = true;
    for (int64_t count = 0; failed; ++count) {
      std::optional<HelperPool> pool;
      bool made = false;
      {
        const ScarceMemory scarce(count, all);
        made = WhereMemoryAllows([&] { pool.emplace(kCores); });
        failed = scarce.any_failed();
      }
      if (!made) {
        ++thrown;
        continue;
      }
      EXPECT_EQ(pool->cores() == kCores, !failed) << count;
      if (failed) ++narrow;
      std::atomic<int> parts{0};
      pool->Run(
          kCores, 3,
          [](void* c, int, int, int parts) { *static_cast<std::atomic<int>*>(c) += 60 / parts; },
          &parts);
      EXPECT_EQ(parts, 180);
    }
  }
  EXPECT_GT(thrown, 0);
  EXPECT_GT(narrow, 2);
}

TEST_F(ScarceMemoryTest, CancelledCallIsAnsweredWithoutMemory) {
  for (int64_t count = 0; count < 20; ++count) {
    auto asked = Ask(40, 16);
    {
      const ScarceMemory scarce(count, true);
      server_->inference.Cancel(*asked->call);
    }
    ASSERT_EQ(asked->results.size(), 1u) << count;
    // Where there is no memory for that message either, the answer is that there is none.
    EXPECT_FALSE(asked->status().ok());
    EXPECT_EQ(RunNext(), 0u);
  }
}

}  // namespace
}  // namespace reprise
