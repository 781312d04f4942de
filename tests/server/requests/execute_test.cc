// Batches on a stream: who shares a replay, whose error it is, what is counted.
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

}  // namespace
}  // namespace reprise
