// Requests under way next to their caller, and streams that wait for each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "runtime/engine/graph_model.h"
#include "runtime/launch/launcher.h"
#include "runtime/launch/work_stream.h"
#include "tests/testing/engine_fixture.h"

namespace reprise {
namespace {

using testing::HasSubstr;

// y = 2 x + 1, by rows.
absl::StatusOr<std::shared_ptr<Model>> LoadLine(Engine& engine) {
  Graph graph;
  const ValueId x = graph.AddInput("x", DType::kFloat32, {{.symbol = "batch"}, {.size = 4}});
  const ValueId two = graph.AddConstant("two", Tensor::FloatScalar(2));
  const ValueId one = graph.AddConstant("one", Tensor::FloatScalar(1));
  const NodeId product = graph.AddNode("Mul", {x, two});
  const NodeId sum =
      graph.AddNodeWithOutputs("Add", {graph.node(product).outputs[0], one}, {}, {"y"}, "sum");
  graph.AddOutput(graph.node(sum).outputs[0]);
  auto made = ModelOfGraph(std::move(graph));
  if (!made.ok()) return made.status();
  return engine.Load({.id = {"line", 1}}, *std::move(made));
}

float FirstOf(const Response& response) {
  EXPECT_TRUE(response.status.ok()) << response.status;
  if (!response.status.ok()) return 0;
  return *reinterpret_cast<const float*>(response.outputs[0].bytes.data());
}

class LaunchTest : public testing::Test {
 protected:
  void SetUp() override {
    auto model = LoadLine(fixture_.engine);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *model;
  }
  // `rows` rows of `value`, which the test keeps.
  Request RequestOf(int64_t rows, float value) {
    bytes_.push_back(std::make_unique<std::vector<float>>(rows * 4, value));
    return {.inputs = {{{rows, 4}, bytes_.back()->data()}}};
  }

  std::vector<std::unique_ptr<std::vector<float>>> bytes_;
  EngineFixture fixture_{/*threads=*/2};
  std::shared_ptr<Model> model_;
};

TEST_F(LaunchTest, EveryRequestGetsItsOwnAnswer) {
  Launcher launcher(fixture_.engine, {.streams = 2});
  std::vector<Future> answers;
  for (int i = 0; i < 50; ++i) answers.push_back(launcher.Submit(model_, RequestOf(1 + i % 3, i)));
  for (int i = 0; i < 50; ++i) EXPECT_EQ(FirstOf(answers[i].Get()), 2 * i + 1);
  EXPECT_FALSE(answers[0].Get().status.ok());  // it was handed out
}

TEST_F(LaunchTest, RequestsThatWaitTogetherShareAReplay) {
  Launcher launcher(fixture_.engine, {.streams = 1, .delay_ns = 200'000'000, .enough_rows = 8});
  std::vector<Future> answers;
  for (int i = 0; i < 8; ++i) answers.push_back(launcher.Submit(model_, RequestOf(1, i)));
  std::vector<int64_t> batches;
  for (Future& answer : answers) batches.push_back(answer.Get().info.batch_size);
  EXPECT_GT(batches.back(), 1);
}

TEST_F(LaunchTest, WithoutBatchesEachHasAReplayOfItsOwn) {
  Launcher launcher(fixture_.engine, {.streams = 1, .batches = false});
  std::vector<Future> answers;
  for (int i = 0; i < 8; ++i) answers.push_back(launcher.Submit(model_, RequestOf(1, i)));
  for (Future& answer : answers) EXPECT_EQ(answer.Get().info.batch_size, 1);
}

TEST_F(LaunchTest, CallbacksComeOnceAlsoForWhatIsRefused) {
  std::atomic<int> answered{0}, refused{0};
  {
    Launcher launcher(fixture_.engine, {.streams = 2});
    for (int i = 0; i < 10; ++i) {
      launcher.Submit(model_, RequestOf(1, i), [&](const Response& response) {
        ++(response.status.ok() ? answered : refused);
      });
    }
    const float bytes[3] = {};
    launcher.Submit(model_, {.inputs = {{{1, 3}, bytes}}}, [&](const Response& response) {
      EXPECT_THAT(std::string(response.status.message()), HasSubstr("x"));
      ++(response.status.ok() ? answered : refused);
    });
  }  // its end waits for the answers
  EXPECT_EQ(answered, 10);
  EXPECT_EQ(refused, 1);
}

TEST_F(LaunchTest, ARequestOfMoreRowsThanAReplayIsSplitAndJoined) {
  Launcher launcher(fixture_.engine, {.streams = 2});
  const int64_t rows = 2 * model_->max_batch() + 3;
  const Response response = launcher.Submit(model_, RequestOf(rows, 3)).Get();
  ASSERT_TRUE(response.status.ok()) << response.status;
  EXPECT_EQ(response.outputs[0].shape, Shape({rows, 4}));
  EXPECT_EQ(reinterpret_cast<const float*>(response.outputs[0].bytes.data())[rows * 4 - 1], 7);
}

TEST_F(LaunchTest, WhatIsLateOrCancelledIsNotComputed) {
  Launcher launcher(fixture_.engine, {.streams = 1, .delay_ns = 5'000'000'000});
  Future waits = launcher.Submit(model_, RequestOf(1, 1));
  EXPECT_FALSE(waits.WaitFor(std::chrono::milliseconds(1)));
  waits.Cancel();
  EXPECT_TRUE(absl::IsCancelled(waits.Get().status));
  Future late = launcher.Submit(model_, RequestOf(1, 1), {.timeout = std::chrono::milliseconds(5)});
  EXPECT_TRUE(absl::IsDeadlineExceeded(late.Get().status));
}

TEST_F(LaunchTest, SessionsOnTwoStreamsRunInTheOrderOfTheirEvents) {
  auto first = fixture_.engine.Bind(model_, {{"batch", 1}});
  auto second = fixture_.engine.Bind(model_, {{"batch", 1}});
  ASSERT_TRUE(first.ok() && second.ok()) << first.status();
  // The second reads the value that the first has written.
  ASSERT_TRUE(
      (*second)->PlaceInput("x", (*first)->output<float>("y").data(), 4 * sizeof(float)).ok());
  WorkStream one, other;
  for (int round = 0; round < 20; ++round) {
    Event filled, used;
    one.Call([&] {
      (*first)->input<float>("x")[0] = round;
      return absl::OkStatus();
    });
    one.Replay(**first);
    one.Record(filled);
    other.Wait(filled);
    other.Replay(**second);
    other.Record(used);
    used.Synchronize();
    EXPECT_TRUE(used.reached());
    EXPECT_GE(used.reached_at_ns(), filled.reached_at_ns());
    EXPECT_EQ((*second)->output<float>("y")[0], 2 * (2 * round + 1) + 1);
  }
}

TEST_F(LaunchTest, AnErrorLeavesOutWhatFollowsUntilItWasTold) {
  WorkStream stream;
  Event event;
  int ran = 0;
  stream.Call([] { return absl::InternalError("broken"); });
  stream.Call([&] {
    ++ran;
    return absl::OkStatus();
  });
  stream.Record(event);
  event.Synchronize();  // is reached all the same: no wait is for ever
  EXPECT_EQ(stream.Synchronize().message(), "broken");
  EXPECT_EQ(ran, 0);
  stream.Call([&] {
    ++ran;
    return absl::OkStatus();
  });
  EXPECT_TRUE(stream.Synchronize().ok());
  EXPECT_EQ(ran, 1);
}

}  // namespace
}  // namespace reprise
