#include "runtime/memory/planner.h"

#include <gtest/gtest.h>

#include <random>

#include "runtime/base/aligned_buffer.h"

namespace reprise {
namespace {

void ExpectNoOverlap(const std::vector<BufferRequest>& requests, const MemoryPlan& plan) {
  ASSERT_EQ(plan.offsets.size(), requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % kAlignment, 0u);
    EXPECT_LE(plan.offsets[i] + requests[i].bytes, plan.bytes);
    for (size_t j = 0; j < i; ++j) {
      const bool live_together =
          requests[i].first <= requests[j].last && requests[j].first <= requests[i].last;
      const bool share = plan.offsets[i] < plan.offsets[j] + requests[j].bytes &&
                         plan.offsets[j] < plan.offsets[i] + requests[i].bytes;
      EXPECT_FALSE(live_together && share) << "buffers " << i << " and " << j;
    }
  }
}

TEST(PlannerTest, NothingNeedsNoBytes) {
  EXPECT_EQ(PlanMemory({}).bytes, 0u);
  const MemoryPlan plan = PlanMemory({{.bytes = 0, .first = 0, .last = 3}});
  EXPECT_EQ(plan.bytes, 0u);
  EXPECT_EQ(plan.offsets, std::vector<size_t>{0});
}

TEST(PlannerTest, BuffersThatNeverMeetShareBytes) {
  const MemoryPlan plan = PlanMemory(std::vector<BufferRequest>{{100, 0, 1}, {100, 2, 3}});
  EXPECT_EQ(plan.bytes, 128u);
  EXPECT_EQ(plan.offsets[0], plan.offsets[1]);
}

TEST(PlannerTest, BuffersThatMeetAtOneLaunchDoNotShare) {
  const std::vector<BufferRequest> requests = {{100, 0, 2}, {100, 2, 3}};
  const MemoryPlan plan = PlanMemory(requests);
  EXPECT_EQ(plan.bytes, 256u);
  ExpectNoOverlap(requests, plan);
}

TEST(PlannerTest, TheSmallestGapThatHoldsABufferIsTaken) {
  // At launch 5 there is a gap of 640 bytes at 0 and one of 448 at 1152.
  const std::vector<BufferRequest> requests = {
      {640, 0, 4}, {512, 0, 9}, {448, 0, 4}, {384, 0, 9}, {320, 5, 9}};
  const MemoryPlan plan = PlanMemory(requests);
  ExpectNoOverlap(requests, plan);
  EXPECT_EQ(plan.offsets[4], plan.offsets[2]);
  EXPECT_EQ(plan.offsets[4], 1152u);
}

TEST(PlannerTest, ChainNeedsItsTwoLargestNeighbours) {
  std::vector<BufferRequest> requests;
  for (int i = 0; i < 50; ++i) requests.push_back({1024, i, i + 1});
  EXPECT_EQ(PlanMemory(requests).bytes, 2048u);
}

// The buffers of a transformer, layer after layer: the plan must not pay for gaps.
TEST(PlannerTest, TransformerLayersNeedNoMoreThanTheLowerBound) {
  std::vector<BufferRequest> requests;
  const size_t hidden = 128 * 384 * 4;
  for (int layer = 0; layer < 12; ++layer) {
    const int t = layer * 7;
    requests.push_back({hidden, t, t + 3});          // layer input, until the residual
    requests.push_back({3 * hidden, t + 1, t + 2});  // Q, K, V
    requests.push_back({hidden, t + 2, t + 3});      // attention
    requests.push_back({hidden, t + 3, t + 6});      // normalised
    requests.push_back({4 * hidden, t + 4, t + 5});  // feed-forward
    requests.push_back({hidden, t + 5, t + 6});
  }
  const MemoryPlan plan = PlanMemory(requests);
  ExpectNoOverlap(requests, plan);
  EXPECT_EQ(plan.bytes, MemoryLowerBound(requests));
}

TEST(PlannerTest, RandomPlansNeverOverlapAndStayNearTheLowerBound) {
  std::mt19937 random(7);
  double total = 0;
  double bound = 0;
  for (int round = 0; round < 200; ++round) {
    const int count = std::uniform_int_distribution<int>(1, 120)(random);
    std::vector<BufferRequest> requests;
    for (int i = 0; i < count; ++i) {
      const int first = std::uniform_int_distribution<int>(0, 60)(random);
      const int length = std::geometric_distribution<int>(0.2)(random);
      const size_t bytes = std::uniform_int_distribution<size_t>(0, 1)(random) == 0
                               ? std::uniform_int_distribution<size_t>(0, 300)(random)
                               : std::uniform_int_distribution<size_t>(0, 100000)(random);
      requests.push_back({bytes, first, first + length});
    }
    const MemoryPlan plan = PlanMemory(requests);
    ExpectNoOverlap(requests, plan);
    const size_t lower = MemoryLowerBound(requests);
    EXPECT_GE(plan.bytes, lower);
    EXPECT_LE(plan.bytes, lower + lower / 2) << "round " << round;
    total += plan.bytes;
    bound += lower;
    EXPECT_EQ(PlanMemory(requests).offsets, plan.offsets);
  }
  EXPECT_LE(total, 1.08 * bound);
}

}  // namespace
}  // namespace reprise
