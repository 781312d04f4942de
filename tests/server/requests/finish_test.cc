// The answers of parts become one.
#include "server/requests/finish.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/requests/inference_fixture.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;

class FinishTest : public InferenceTest {
 protected:
  void SetUp() override {
    InferenceTest::SetUp();
    auto found = server_->repository.Find("bert", "");
    ASSERT_TRUE(found.ok()) << found.status();
    state_.model = *std::move(found);
    state_.columns = {1, 16};
    state_.rows = 1;
  }
  static PartAnswer Answer(absl::Status status, int64_t batch = 0) {
    return {.response = {.status = std::move(status), .info = {.batch = batch}}};
  }
  // Returns a step that notes that it ran.
  AnswerStep Step(int number, absl::Status status = absl::OkStatus()) {
    return [this, number, status](InferResult&) {
      steps_.push_back(number);
      return status;
    };
  }
  InferResult Finish(std::vector<PartAnswer> answers) {
    return FinishRequest(state_, answers, server_->clock);
  }

  RequestState state_;
  std::vector<int> steps_;
};

TEST_F(FinishTest, ErrorOfAPartIsTheAnswerAndNoCancelledOneHidesIt) {
  state_.on_answer = {Step(1)};
  const InferResult result =
      Finish({Answer(absl::CancelledError("dropped")),
              Answer(absl::InvalidArgumentError("bad token"), 7), Answer(absl::OkStatus(), 8)});
  EXPECT_EQ(result.status, absl::InvalidArgumentError("bad token"));
  EXPECT_TRUE(steps_.empty());
  ASSERT_EQ(server_->events.records.size(), 1u);
  EXPECT_EQ(server_->events.records[0].code, absl::StatusCode::kInvalidArgument);
}

TEST_F(FinishTest, AnswerGoesBackThroughTheStepsTheLastOneFirst) {
  state_.on_answer = {Step(1), Step(2)};
  EXPECT_TRUE(Finish({Answer(absl::OkStatus(), 3)}).status.ok());
  EXPECT_THAT(steps_, ElementsAre(2, 1));
}

TEST_F(FinishTest, StepThatFailsIsTheAnswer) {
  state_.on_answer = {Step(1), Step(2, absl::ResourceExhaustedError("too long"))};
  const InferResult result = Finish({Answer(absl::OkStatus(), 3)});
  EXPECT_EQ(result.status, absl::ResourceExhaustedError("too long"));
  EXPECT_THAT(steps_, ElementsAre(2));
  ASSERT_EQ(server_->events.records.size(), 1u);
  EXPECT_EQ(server_->events.records[0].code, absl::StatusCode::kResourceExhausted);
}

TEST_F(FinishTest, ReplaysAreNamedOnceInTheOrderOfTheirIds) {
  const InferResult result = Finish(
      {Answer(absl::OkStatus(), 9), Answer(absl::OkStatus(), 4), Answer(absl::OkStatus(), 9)});
  EXPECT_THAT(result.batches, ElementsAre(4, 9));
  EXPECT_EQ(result.response.info.batch, 9);
}

TEST_F(FinishTest, ManyRowsAreSplitAndTheAnswersJoined) {
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

  // The last row equals a request of its own.
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

}  // namespace
}  // namespace reprise
