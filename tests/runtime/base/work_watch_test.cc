#include "runtime/base/work_watch.h"

#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <thread>
#include <vector>

namespace reprise {
namespace {

class Asked final : public WorkWatch {
 public:
  explicit Asked(int most, int64_t max_bytes = 0) : WorkWatch(max_bytes), most_(most) {}
  bool Ends() const override { return ++asked_ > most_; }
  int asked() const { return asked_; }
  int64_t too_much() const { return too_much_; }

 private:
  void OnTooMuch(int64_t bytes) override { too_much_ = bytes; }

  const int most_;
  mutable int asked_ = 0;
  int64_t too_much_ = 0;
};

TEST(WorkWatchTest, WithoutAWatchNothingIsAsked) {
  for (int i = 0; i < 10; ++i) WatchWork(WorkWatch::kStepsPerLook);
}

TEST(WorkWatchTest, ALoopIsEndedAtTheQuestionThatSaysSo) {
  const Asked watch(3);
  int64_t steps = 0;
  const auto loop = [&] {
    while (true) {
      WatchWork(1000);
      steps += 1000;
    }
  };
  EXPECT_THROW(loop(), WorkEnded);
  EXPECT_TRUE(watch.ended());
  EXPECT_EQ(watch.asked(), 4);
  EXPECT_NEAR(static_cast<double>(steps), 4.0 * WorkWatch::kStepsPerLook, 4096);
}

TEST(WorkWatchTest, AWatchHoldsOnItsThreadUntilItsEndInPlaceOfTheOneBefore) {
  const Asked outer(0);
  {
    const Asked inner(1 << 20);
    WatchWork(WorkWatch::kStepsPerLook);
    EXPECT_EQ(inner.asked(), 1);
  }
  std::thread([] { WatchWork(WorkWatch::kStepsPerLook); }).join();
  EXPECT_EQ(outer.asked(), 0);
  EXPECT_THROW(WatchWork(WorkWatch::kStepsPerLook), WorkEnded);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// A block that the compiler cannot leave out.
std::unique_ptr<void, void (*)(void*)> Block(size_t bytes) {
  void* block = ::operator new(bytes);
  asm volatile("" : "+r"(block) : : "memory");
  return {block, [](void* made) { ::operator delete(made); }};
}

constexpr size_t kMegabyte = 1 << 20;

TEST(WorkWatchTest, LargeBlocksAreCountedWhileTheyLive) {
  const Asked watch(1 << 20, 16 * kMegabyte);
  for (int i = 0; i < 100; ++i) Block(10 * kMegabyte);  // one after another
  const auto first = Block(10 * kMegabyte);
  std::vector<std::unique_ptr<void, void (*)(void*)>> small;
  for (int i = 0; i < 20; ++i) small.push_back(Block(kMegabyte / 2));
  EXPECT_FALSE(watch.ended());
  EXPECT_THROW(Block(10 * kMegabyte), std::bad_alloc);
  EXPECT_TRUE(watch.ended());
  EXPECT_EQ(watch.too_much(), 20 * kMegabyte);
}

TEST(WorkWatchTest, WhoAsksForABlockOrNothingGetsNothing) {
  const Asked watch(1 << 20, kMegabyte);
  EXPECT_EQ(::operator new(4 * kMegabyte, std::nothrow), nullptr);
}

TEST(WorkWatchTest, BlocksOlderThanTheWatchGiveNothingBack) {
  auto old = Block(8 * kMegabyte);
  const Asked watch(1 << 20, 4 * kMegabyte);
  old.reset();
  EXPECT_THROW(Block(5 * kMegabyte), std::bad_alloc);
}
#endif

}  // namespace
}  // namespace reprise
