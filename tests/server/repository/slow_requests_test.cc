// Which requests are kept as the slowest, and which stage is named.
#include "server/repository/slow_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::Pair;

constexpr int64_t kMs = 1'000'000;

class SlowRequestsTest : public ::testing::Test {
 protected:
  void Record(int64_t total_ms, const PhaseTimes& times = {}, absl::string_view capture = "") {
    slow_.Record({.times = times, .id = "mine", .capture = capture}, total_ms * kMs, now_);
  }
  std::vector<int64_t> Kept() const {
    std::vector<int64_t> ms;
    for (const SlowRequest& one : slow_.List(now_)) ms.push_back(one.total_ns / kMs);
    return ms;
  }

  SlowRequests slow_;
  std::chrono::system_clock::time_point now_{minutes(1000)};
};

TEST_F(SlowRequestsTest, TheSlowestAreKeptTheSlowestFirst) {
  for (const int64_t ms : {5, 90, 1, 70, 20, 30, 10, 80, 40, 60, 2, 50}) Record(ms);
  EXPECT_THAT(Kept(), ElementsAre(90, 80, 70, 60, 50, 40, 30, 20));
}

TEST_F(SlowRequestsTest, WhatIsOldLeavesAndMakesRoom) {
  for (int i = 0; i < 8; ++i) Record(100 + i);
  now_ += minutes(9);
  Record(50);
  EXPECT_EQ(Kept().size(), 8u);
  EXPECT_EQ(Kept().back(), 100);
  now_ += minutes(1) + seconds(1);
  EXPECT_TRUE(Kept().empty());
  Record(3);
  EXPECT_THAT(Kept(), ElementsAre(3));
}

TEST_F(SlowRequestsTest, TheLongestStageIsNamed) {
  Record(100, {.tokenizer_ns = 60 * kMs, .queue_ns = 10 * kMs, .compute_infer_ns = 20 * kMs},
         "replayed");
  Record(90, {.queue_ns = 70 * kMs, .compute_infer_ns = 20 * kMs}, "waited");
  Record(80, {.compute_infer_ns = 70 * kMs}, "captured");
  Record(70, {.compute_infer_ns = 10 * kMs}, "replayed");
  const std::vector<SlowRequest> slow = slow_.List(now_);
  ASSERT_EQ(slow.size(), 4u);
  EXPECT_EQ(slow[0].slow_stage(), "tokenizer");
  EXPECT_THAT(slow[0].stages, ElementsAre(Pair("tokenizer", 60 * kMs), Pair("queue", 10 * kMs),
                                          Pair("replay", 20 * kMs), Pair("rest", 10 * kMs)));
  EXPECT_EQ(slow[1].slow_stage(), "queue, for a capture");
  EXPECT_EQ(slow[2].slow_stage(), "capture and replay");
  EXPECT_EQ(slow[3].slow_stage(), "rest");
}

}  // namespace
}  // namespace reprise
