// The walk of a request without a transport: a real model, the scheduler driven by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/requests/inference_fixture.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;

TEST_F(InferenceTest, CancelledRequestIsAnsweredWithoutWork) {
  auto asked = Ask(40, 16);
  server_->inference.Cancel(*asked->call);
  ASSERT_EQ(asked->results.size(), 1u);
  EXPECT_EQ(asked->status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(RunNext(), 0u);
}

TEST_F(InferenceTest, RequestThatDoesNotFitTheModelIsRefusedBeforeTheQueue) {
  auto asked = Make(1, 20);
  asked->view.inputs.pop_back();
  Start(*asked);
  ASSERT_TRUE(asked->done());
  EXPECT_EQ(asked->status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(server_->events.depth, 0);
}

TEST_F(InferenceTest, StageThatIsAddedSeesTheAdmittedRequestAndItsAnswer) {
  std::vector<Stage> stages = RequestStages(server_->repository);
  std::vector<Shape> seen;
  int answers = 0;
  stages.push_back([&](const InferRequest& asked, RequestState& state) -> absl::Status {
    if (asked.id == "unwelcome") return absl::PermissionDeniedError("the guest list lacks it");
    seen.push_back(state.parts.at(0).request.inputs.at(0).shape);
    state.on_answer.push_back([&answers](InferResult& result) {
      ++answers;
      result.response.outputs[0].bytes.clear();
      return absl::OkStatus();
    });
    return absl::OkStatus();
  });
  Inference inference(std::move(stages), server_->repository, server_->scheduler,
                      server_->fixture.engine, server_->clock, server_->events);
  auto asked = Make(1, 20), refused = Make(1, 20);
  StartBy(inference, *asked);
  refused->view.id = "unwelcome";
  StartBy(inference, *refused);
  EXPECT_EQ(RunNext(), 1u);
  EXPECT_THAT(seen, ::testing::ElementsAre(Shape{1, 20}));
  EXPECT_EQ(answers, 1);
  ASSERT_TRUE(asked->status().ok()) << asked->status();
  EXPECT_EQ(asked->results[0].response.outputs[0].bytes, "");
  EXPECT_EQ(refused->status().code(), absl::StatusCode::kPermissionDenied);
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

}  // namespace
}  // namespace reprise
