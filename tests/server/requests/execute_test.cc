// Batches on a stream: which requests share a replay, which get an error, which counts change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/requests/inference_fixture.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;

class ExecuteTest : public InferenceTest {};

TEST_F(ExecuteTest, DifferentLengthsAreAnsweredFromOneReplay) {
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

TEST_F(ExecuteTest, BadTokenFailsItsRequestAlone) {
  auto good = Ask(1, 20);
  auto bad = Make(1, 20);
  bad->tokens->columns[0][7] = 10'000'000;
  Start(*bad);
  EXPECT_EQ(RunNext(), 2u);
  EXPECT_TRUE(good->status().ok()) << good->status();
  EXPECT_EQ(bad->status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(bad->status().message()), HasSubstr("10000000"));
}

TEST_F(ExecuteTest, StatisticsCountRequestsRowsAndBatches) {
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

TEST_F(ExecuteTest, CancelledWhileItRunsIsAnsweredAtOnceAndItsMateGetsItsOwnAnswer) {
  // The bucket of both is ready: else they would not wait for its capture together.
  auto both = Ask(2, 30);
  ASSERT_EQ(RunNext(), 1u);
  auto alone = Ask(1, 30);
  ASSERT_EQ(RunNext(), 1u);
  auto gone = Ask(1, 20), mate = Ask(1, 30);
  auto batch = server_->scheduler.TryTake();
  ASSERT_TRUE(batch.has_value());
  ASSERT_EQ(batch->items.size(), 2u);
  server_->inference.Cancel(*gone->call);
  ASSERT_EQ(gone->results.size(), 1u);  // nothing is computed yet
  EXPECT_EQ(gone->status().code(), absl::StatusCode::kCancelled);
  server_->inference.Execute(*batch, *server_->fixture.stream);
  server_->scheduler.Finish(*batch);
  EXPECT_EQ(gone->results.size(), 1u);
  ASSERT_TRUE(mate->status().ok()) << mate->status();
  EXPECT_EQ(mate->results[0].response.outputs[0].shape, (Shape{1, 30, 384}));
  EXPECT_EQ(mate->results[0].response.outputs[0].bytes.size(),
            alone->results[0].response.outputs[0].bytes.size());
}

TEST_F(ExecuteTest, AReplayThatNobodyWaitsForComputesNothing) {
  auto asked = Ask(1, 20);
  auto batch = server_->scheduler.TryTake();
  ASSERT_TRUE(batch.has_value());
  server_->inference.Cancel(*asked->call);
  EXPECT_TRUE(batch->run->stop.stopped());
  const Part& part = *batch->items[0];
  const Request* request = &part.request;
  const std::vector<Response> responses = server_->fixture.engine.Run(
      batch->builder->plan(), {&request, 1}, *server_->fixture.stream, &batch->run->stop);
  EXPECT_EQ(responses[0].status.code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(responses[0].outputs.empty());
  EXPECT_THAT(std::string(responses[0].status.message()), HasSubstr("no client waits"));
  server_->scheduler.Finish(*batch);
}

// The bytes of a request are its transport's: they stay while a stream may read them.
TEST_F(ExecuteTest, WhatTheRequestPointsIntoLivesAsLongAsTheRunThatReadsIt) {
  auto asked = Make(1, 20);
  auto bytes = std::make_shared<int>(0);  // stands for the message
  const std::weak_ptr<int> alive = bytes;
  asked->call = server_->inference.Start(asked->view, [&asked, held = bytes](InferResult result) {
    asked->results.push_back(std::move(result));
  });
  auto batch = server_->scheduler.TryTake();
  ASSERT_TRUE(batch.has_value());
  server_->inference.Cancel(*asked->call);
  asked->call.reset();
  EXPECT_TRUE(asked->done());
  bytes.reset();
  EXPECT_FALSE(alive.expired());
  server_->scheduler.Finish(*batch);
  batch.reset();
  EXPECT_TRUE(alive.expired());
}

}  // namespace
}  // namespace reprise
