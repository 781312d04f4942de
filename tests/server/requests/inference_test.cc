// The walk of a request without a transport: a real model, the scheduler driven by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/server/requests/inference_fixture.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;

TEST_F(InferenceTest, DifferentLengthsAreAnsweredFromOneReplay) {
  auto a = Ask(1, 20), b = Ask(1, 30), c = Ask(2, 25);
  EXPECT_EQ(server_->events.depth, 3);
  EXPECT_EQ(RunNext(), 3u);
  for (const Asked* asked : {a.get(), b.get(), c.get()}) {
    ASSERT_EQ(asked->results.size(), 1u);
    ASSERT_TRUE(asked->status().ok()) << asked->status();
    const ReplayInfo& info = asked->results[0].response.info;
    EXPECT_EQ(info.bucket, "t128");
    EXPECT_EQ(info.batch, a->results[0].response.info.batch);
    EXPECT_EQ(info.batch_size, 4);
  }
  EXPECT_EQ(b->results[0].response.outputs[0].shape, (Shape{1, 30, 384}));
  EXPECT_EQ(c->results[0].response.outputs[0].shape, (Shape{2, 25, 384}));
  EXPECT_EQ(server_->events.batches, 1);
  ASSERT_EQ(server_->events.records.size(), 3u);
  int64_t rows = 0;
  for (const RequestRecord& record : server_->events.records) rows += record.rows;
  EXPECT_EQ(rows, 4);
}

TEST_F(InferenceTest, ManyRowsAreSplitAndTheAnswersJoined) {
  auto asked = Ask(40, 16);
  EXPECT_EQ(RunNext(), 1u);
  EXPECT_FALSE(asked->done());
  EXPECT_EQ(RunNext(), 1u);
  ASSERT_TRUE(asked->done());
  const InferResult& result = asked->results[0];
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.response.outputs[0].shape, (Shape{40, 16, 384}));
  ASSERT_EQ(result.batches.size(), 2u);
  EXPECT_EQ(result.response.info.batch, result.batches[1]);
  EXPECT_EQ(server_->events.records.size(), 1u);

  // The last row is that of a request of its own.
  auto alone = Make(1, 16);
  for (size_t i = 0; i < 3; ++i) {
    const int64_t row_bytes = 16 * 8;
    alone->view.inputs[i].bytes = asked->view.inputs[i].bytes.substr(39 * row_bytes, row_bytes);
  }
  Start(*alone);
  RunNext();
  ASSERT_TRUE(alone->done());
  const std::string& expected = alone->results[0].response.outputs[0].bytes;
  const std::string actual = result.response.outputs[0].bytes.substr(39 * expected.size());
  ASSERT_EQ(actual.size(), expected.size());
  const auto* a = reinterpret_cast<const float*>(actual.data());
  const auto* e = reinterpret_cast<const float*>(expected.data());
  for (size_t i = 0; i < expected.size() / sizeof(float); ++i) {
    ASSERT_NEAR(a[i], e[i], 1e-4) << i;
  }
}

TEST_F(InferenceTest, BadTokenFailsItsRequestAlone) {
  auto good = Ask(1, 20);
  auto bad = Make(1, 20);
  bad->tokens->columns[0][7] = 10'000'000;
  Start(*bad);
  EXPECT_EQ(RunNext(), 2u);
  EXPECT_TRUE(good->status().ok()) << good->status();
  EXPECT_EQ(bad->status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(bad->status().message()), HasSubstr("10000000"));
}

TEST_F(InferenceTest, CancelledRequestIsAnsweredWithoutWork) {
  auto asked = Ask(40, 16);
  server_->inference.Cancel(*asked->call);
  ASSERT_EQ(asked->results.size(), 1u);
  EXPECT_EQ(asked->status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(RunNext(), 0u);
}

TEST_F(InferenceTest, TimeoutEndsTheWaitInTheQueue) {
  auto asked = Make(1, 20);
  asked->view.timeout_us = 50;
  Start(*asked);
  server_->clock.AdvanceNs(50'000);
  server_->scheduler.Expire();
  ASSERT_TRUE(asked->done());
  EXPECT_EQ(asked->status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(InferenceTest, FullQueueRefusesAtOnceAndIsCountedAsRejected) {
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

TEST_F(InferenceTest, RequestThatDoesNotFitTheModelIsRefusedBeforeTheQueue) {
  auto asked = Make(1, 20);
  asked->view.inputs.pop_back();
  Start(*asked);
  ASSERT_TRUE(asked->done());
  EXPECT_EQ(asked->status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(server_->events.depth, 0);
}

TEST_F(InferenceTest, UnknownModelIsCountedWithoutItsName) {
  auto asked = Make(1, 20);
  asked->view.model = "nobody";
  Start(*asked);
  ASSERT_TRUE(asked->done());
  EXPECT_EQ(asked->status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(server_->events.unknown.size(), 1u);
  EXPECT_TRUE(server_->events.records.empty());
}

TEST_F(InferenceTest, StatisticsCountRequestsRowsAndBatches) {
  auto version = server_->repository.FindListed("bert", "1");
  const Statistics before = version->statistics.Snapshot();
  auto a = Ask(1, 20), b = Ask(3, 20);
  RunNext();
  const Statistics after = version->statistics.Snapshot();
  EXPECT_EQ(after.success.count - before.success.count, 2u);
  EXPECT_EQ(after.inference_count - before.inference_count, 4u);
  EXPECT_EQ(after.execution_count - before.execution_count, 1u);
  EXPECT_EQ(after.phases.compute_input.count, after.phases.compute_infer.count);
  EXPECT_EQ(after.phases.compute_input.count, after.phases.compute_output.count);
}

}  // namespace
}  // namespace reprise
