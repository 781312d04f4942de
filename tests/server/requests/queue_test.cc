// How long a request waits, and when it may not.
#include "server/requests/queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/requests/inference_fixture.h"

namespace reprise {
namespace {

class QueueTest : public InferenceTest {};

TEST_F(QueueTest, FullQueueRefusesAtOnceAndIsCountedAsRejected) {
  std::vector<std::unique_ptr<Asked>> waiting;
  for (int i = 0; i < 4; ++i) waiting.push_back(Ask(1, 20));
  auto refused = Ask(1, 20);
  ASSERT_TRUE(refused->done());
  EXPECT_EQ(refused->call, nullptr);
  EXPECT_EQ(refused->status().code(), absl::StatusCode::kResourceExhausted);
  ASSERT_EQ(server_->events.records.size(), 1u);
  EXPECT_TRUE(server_->events.records[0].queue_full);
  EXPECT_EQ(RunNext(), 4u);
}

TEST_F(QueueTest, TimeoutEndsTheWaitInTheQueue) {
  auto asked = Make(1, 20);
  asked->view.timeout_us = 50;
  Start(*asked);
  server_->clock.AdvanceNs(50'000);
  server_->scheduler.Expire();
  ASSERT_TRUE(asked->done());
  EXPECT_EQ(asked->status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(QueueTest, PartsKeepDeadlineAndPriorityOfTheirRequest) {
  auto asked = Make(40, 16);
  RequestState state{.start_ns = server_->clock.NowNs()};
  asked->view.timeout_us = 70;
  for (const Stage& stage : RequestStages(server_->repository)) {
    const absl::Status status = stage(asked->view, state);
    ASSERT_TRUE(status.ok()) << status;
  }
  const int64_t deadline_ns = state.start_ns + 70'000;
  EXPECT_EQ(state.deadline_ns, deadline_ns);
  int answers = 0;
  const auto call =
      Enqueue(state, server_->scheduler, server_->clock, [&answers](InferResult) { ++answers; });
  ASSERT_TRUE(call.ok()) << call.status();
  std::vector<RequestScheduler::Batch> batches;
  while (auto batch = server_->scheduler.TryTake()) batches.push_back(*std::move(batch));
  int64_t rows = 0;
  for (RequestScheduler::Batch& batch : batches) {
    for (const auto& part : batch.items) {
      EXPECT_EQ(part->shape.deadline_ns, deadline_ns);
      EXPECT_EQ(part->shape.tokens, part->shape.rows * 16);
      EXPECT_EQ(part->shape.bytes, part->shape.tokens * 3 * 8);
      rows += part->shape.rows;
      part->Drop(absl::UnavailableError("a test"));
    }
    server_->scheduler.Finish(batch);
  }
  EXPECT_EQ(rows, 40);
  EXPECT_EQ(answers, 1);
}

TEST(LargestReplayTest, IsTheLimitOfABatchOrOneRowThatIsLarger) {
  BucketPolicy buckets = BucketPolicy::Default("batch", {"sequence"});
  ASSERT_EQ(buckets.Elements({{"batch", 32}, {"sequence", 512}}), 4 * buckets.max_batch_tokens);
  EXPECT_EQ(TokensOfLargestReplay(buckets), buckets.max_batch_tokens);
  buckets.axes[0].axis == "batch" ? buckets.axes[1].sizes.push_back(10'000)
                                  : buckets.axes[0].sizes.push_back(10'000);
  EXPECT_EQ(TokensOfLargestReplay(buckets), 10'000);
}

}  // namespace
}  // namespace reprise
