#include "runtime/base/work_watch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <new>
#include <thread>

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
  Asked watch(3);
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
  Asked outer(0);
  {
    Asked inner(1 << 20);
    WatchWork(WorkWatch::kStepsPerLook);
    EXPECT_EQ(inner.asked(), 1);
  }
  std::thread([] { WatchWork(WorkWatch::kStepsPerLook); }).join();
  EXPECT_EQ(outer.asked(), 0);
  EXPECT_THROW(WatchWork(WorkWatch::kStepsPerLook), WorkEnded);
}

TEST(WorkWatchTest, BlocksAreCountedWhileTheyLive) {
  Asked watch(1 << 20, 16'000'000);
  for (int i = 0; i < 100; ++i) {  // one after another
    watch.TakeBytes(10'000'000);
    watch.GiveBytes(10'000'000);
  }
  watch.TakeBytes(10'000'000);
  EXPECT_FALSE(watch.ended());
  EXPECT_THROW(watch.TakeBytes(8'000'000), std::bad_alloc);
  EXPECT_TRUE(watch.ended());
  EXPECT_EQ(watch.too_much(), 18'000'000);
  EXPECT_THROW(watch.TakeBytes(SIZE_MAX), std::bad_alloc);
}

TEST(WorkWatchTest, BlocksOlderThanTheWatchGiveNothingBack) {
  Asked watch(1 << 20, 4'000'000);
  watch.GiveBytes(8'000'000);
  EXPECT_THROW(watch.TakeBytes(5'000'000), std::bad_alloc);
}

TEST(WorkWatchTest, WithoutALimitNothingIsTooMuch) {
  Asked watch(1 << 20);
  watch.TakeBytes(SIZE_MAX);
  EXPECT_FALSE(watch.ended());
}

}  // namespace
}  // namespace reprise
