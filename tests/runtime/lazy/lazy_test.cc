// Ops of a program: three modes, captured graphs, and refusals of a capture.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "runtime/lazy/capture.h"
#include "runtime/lazy/function.h"
#include "runtime/lazy/ops.h"
#include "runtime/ops/custom/registered_op.h"
#include "tests/testing/engine_fixture.h"

namespace reprise::lazy {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;

std::vector<float> Numbers(size_t count, uint32_t seed) {
  std::vector<float> numbers(count);
  for (float& number : numbers) {
    seed = seed * 1664525u + 1013904223u;
    number = static_cast<float>(seed >> 8) / (1 << 24) - 0.5f;
  }
  return numbers;
}

std::vector<float> ValuesOf(const Tensor& tensor) {
  const auto values = tensor.ToVector<float>();
  EXPECT_TRUE(values.ok()) << values.status();
  return values.ok() ? *values : std::vector<float>();
}

class LazyTest : public testing::Test {
 protected:
  EngineFixture fixture_{/*threads=*/2};
  OpStream stream_{fixture_.engine};
};

TEST_F(LazyTest, OpsAccumulateUntilAValueIsAskedFor) {
  const Tensor a = stream_.FromVector<float>({2, 2}, {1, -2, 3, -4});
  const Tensor b = Relu(a - 1) * 2 + 1;
  EXPECT_EQ(b.shape(), Shape({2, 2}));
  EXPECT_EQ(stream_.stats().captures, 0);
  EXPECT_THAT(ValuesOf(b), ElementsAre(1, 1, 5, 1));
  EXPECT_EQ(stream_.stats().captures, 1);
  EXPECT_EQ(stream_.stats().replays, 1);
}

TEST_F(LazyTest, TheSameOpsAgainAreOneReplay) {
  for (int step = 1; step <= 4; ++step) {
    const Tensor a = stream_.FromVector<float>({3}, {1.0f * step, 2, 3});
    const Tensor b = Tanh(a) + Exp(a);
    ASSERT_TRUE(stream_.MarkStep().ok());
    EXPECT_NEAR(ValuesOf(b)[0], std::tanh(step) + std::exp(step), 1e-3);
  }
  EXPECT_EQ(stream_.stats().captures, 1);
  EXPECT_EQ(stream_.stats().replays, 4);
}

TEST_F(LazyTest, WhatNobodyHoldsIsNotComputedAndLaterOpsReadWhatWasComputed) {
  const Tensor a = stream_.FromVector<float>({2}, {1, 2});
  { const Tensor dropped = Log(a); }
  const Tensor b = a * 3;
  ASSERT_TRUE(stream_.MarkStep().ok());
  const Tensor c = b + a;
  EXPECT_THAT(ValuesOf(c), ElementsAre(4, 8));
  EXPECT_EQ(stream_.stats().captures, 2);
}

TEST_F(LazyTest, ShapesThatDoNotAgreeFailAtTheirLineAndGoOn) {
  std::vector<std::string> told;
  OpStream stream(fixture_.engine, {.on_error = [&](const absl::Status& status) {
                    told.push_back(std::string(status.message()));
                  }});
  const Tensor a = stream.FromVector<float>({2}, {1, 2});
  const Tensor b = stream.FromVector<float>({3}, {1, 2, 3});
  const Tensor sum = a + b;
  ASSERT_EQ(told.size(), 1);
  EXPECT_THAT(told[0], HasSubstr("Add at lazy_test.cc:"));
  EXPECT_FALSE(sum.status().ok());
  EXPECT_FALSE((sum * 2).status().ok());
  EXPECT_THAT(ValuesOf(a * 2), ElementsAre(2, 4));
}

TEST_F(LazyTest, ValuesThatDecideShapesAreComputedOnTheWay) {
  const Tensor a = stream_.FromVector<float>({2, 3}, Numbers(6, 1));
  const Tensor size = stream_.FromVector<int64_t>({1}, {5}) + 1;
  const Tensor b = Op("Reshape", {a, size});
  EXPECT_EQ(b.shape(), Shape({6}));
  const Tensor places = Op("NonZero", {stream_.FromVector<float>({4}, {0, 1, 0, 2})});
  EXPECT_EQ(places.shape(), Shape({1, 2}));
  EXPECT_THAT(*places.ToVector<int64_t>(), ElementsAre(1, 3));
}

TEST_F(LazyTest, ACapturedGraphReplaysOverWhatItsInputsHold) {
  Tensor a = stream_.FromVector<float>({4}, {1, 2, 3, 4});
  a.SetName("a");
  CapturedGraph graph;
  Tensor kept;
  {
    Capture capture(stream_, graph);
    kept = a + 1;
    capture.Output("b", kept * 2);
  }
  ASSERT_TRUE(graph.status().ok()) << graph.status();
  EXPECT_THAT(graph.input_names(), ElementsAre("a"));
  EXPECT_THAT(graph.output_names(), ElementsAre("b", "output_1"));
  const absl::Span<float> in = graph.input<float>("a");
  const absl::Span<const float> out = graph.output<float>("b");
  ASSERT_TRUE(graph.Replay().ok());
  EXPECT_THAT(out, ElementsAre(4, 6, 8, 10));
  in[0] = 10;
  a.mutable_data<float>()[1] = 20;
  ASSERT_TRUE(graph.Replay().ok());
  EXPECT_EQ(out.data(), graph.output<float>("b").data());
  EXPECT_THAT(out, ElementsAre(22, 42, 8, 10));
  EXPECT_THAT(ValuesOf(kept), ElementsAre(11, 21, 4, 5));
  // An op after the graph reads its output.
  EXPECT_THAT(ValuesOf(kept + 1), ElementsAre(12, 22, 5, 6));
  EXPECT_TRUE(graph.input<int64_t>("a").empty());
  EXPECT_TRUE(graph.output<float>("c").empty());
}

TEST_F(LazyTest, WhatCannotBeCapturedFailsAtItsLineWithAWayOut) {
  const Tensor a = stream_.FromVector<float>({4}, {1, 0, 3, 0});
  CapturedGraph graph;
  {
    Capture capture(stream_, graph);
    const Tensor b = a + 1;
    const auto values = b.data<float>();
    ASSERT_FALSE(values.ok());
    EXPECT_THAT(values.status().message(),
                AllOf(HasSubstr("is not supported during capture, at lazy_test.cc:"),
                      HasSubstr("after the capture")));
  }
  EXPECT_THAT(graph.status().message(), HasSubstr("reading a value"));
  EXPECT_FALSE(graph.Replay().ok());
  {
    Capture capture(stream_, graph);
    const Tensor places = Op("NonZero", {a});
    EXPECT_FALSE(places.status().ok());
  }
  EXPECT_THAT(graph.status().message(),
              AllOf(HasSubstr("NonZero is not supported during capture, at lazy_test.cc:"),
                    HasSubstr("before the capture")));
  {
    Capture capture(stream_, graph);
    EXPECT_FALSE(stream_.MarkStep().ok());
  }
  EXPECT_THAT(graph.status().message(), HasSubstr("MarkStep is not supported during capture"));
  {
    CapturedGraph inner;
    Capture capture(stream_, graph);
    const Tensor b = a + 1;
    Capture second(stream_, inner);
    EXPECT_FALSE(inner.status().ok());
  }
  EXPECT_FALSE(graph.status().ok());
  // The stream is as it was.
  EXPECT_THAT(ValuesOf(a + 1), ElementsAre(2, 1, 4, 1));
}

TEST_F(LazyTest, OutputsGoToMemoryOfTheProgramAndReleaseTheGraphs) {
  const Tensor a = stream_.FromVector<float>({3}, {1, 2, 3});
  CapturedGraph graph;
  {
    Capture capture(stream_, graph, {.release_outputs = true});
    capture.Output("b", a * 2);
  }
  ASSERT_TRUE(graph.status().ok()) << graph.status();
  EXPECT_THAT(graph.Replay().message(), HasSubstr("output 'b' has no place"));
  std::vector<float> mine(3);
  EXPECT_FALSE(graph.PlaceOutput("b", mine.data(), 8).ok());
  EXPECT_FALSE(graph.PlaceOutput("c", mine.data(), 12).ok());
  ASSERT_TRUE(graph.PlaceOutput("b", mine.data(), 12).ok());
  ASSERT_TRUE(graph.Replay().ok());
  EXPECT_THAT(mine, ElementsAre(2, 4, 6));
}

// y = softmax(gelu(x w1 + b) w2 + x), some times.
std::vector<float> RunLayers(Engine& engine, Mode mode, bool fusion, size_t* graphs = nullptr) {
  constexpr int64_t kRows = 6, kWidth = 48;
  OpStream stream(engine, {.mode = mode, .fusion = fusion});
  const Tensor w1 = stream.Parameter<float>({kWidth, kWidth}, Numbers(kWidth * kWidth, 1));
  const Tensor w2 = stream.Parameter<float>({kWidth, kWidth}, Numbers(kWidth * kWidth, 2));
  const Tensor bias = stream.Parameter<float>({kWidth}, Numbers(kWidth, 3));
  Function layer(stream, [&](const std::vector<Tensor>& in) {
    const Tensor hidden = Gelu(MatMul(in[0], w1) + bias);
    return std::vector<Tensor>{Softmax(MatMul(hidden, w2) / 8 + in[0])};
  });
  Tensor x = stream.FromVector<float>({kRows, kWidth}, Numbers(kRows * kWidth, 4));
  for (int step = 0; step < 3; ++step) {
    auto results = layer({x});
    EXPECT_TRUE(results.ok()) << results.status();
    if (!results.ok()) return {};
    x = (*results)[0];
  }
  if (graphs != nullptr) *graphs = layer.num_graphs();
  return ValuesOf(x);
}

TEST_F(LazyTest, LazyAndGraphGiveTheSameBitsAndEagerAgrees) {
  size_t graphs = 0;
  const std::vector<float> lazy = RunLayers(fixture_.engine, Mode::kLazy, true);
  const std::vector<float> graph = RunLayers(fixture_.engine, Mode::kGraph, true, &graphs);
  const std::vector<float> eager = RunLayers(fixture_.engine, Mode::kEager, true);
  EXPECT_EQ(lazy, graph);
  EXPECT_EQ(graphs, 1);
  ASSERT_EQ(lazy.size(), eager.size());
  for (size_t i = 0; i < lazy.size(); ++i) {
    EXPECT_NEAR(eager[i], lazy[i], 1e-4 + 1e-4 * std::abs(lazy[i]));
  }
}

TEST_F(LazyTest, WithoutFusionAllThreeModesGiveTheSameBits) {
  const std::vector<float> lazy = RunLayers(fixture_.engine, Mode::kLazy, false);
  EXPECT_EQ(lazy, RunLayers(fixture_.engine, Mode::kGraph, false));
  EXPECT_EQ(lazy, RunLayers(fixture_.engine, Mode::kEager, false));
}

TEST_F(LazyTest, EagerComputesEachOpOnARecipeOfItsOwn) {
  OpStream stream(fixture_.engine, {.mode = Mode::kEager});
  const Tensor a = stream.FromVector<float>({2}, {1, 2});
  for (int step = 0; step < 3; ++step) {
    const Tensor b = (a + 1) * 2;
    EXPECT_THAT(ValuesOf(b), ElementsAre(4, 6));
  }
  EXPECT_EQ(stream.stats().ops, 6);
  EXPECT_EQ(stream.stats().captures, 2);
  EXPECT_EQ(stream.stats().replays, 6);
}

TEST_F(LazyTest, OtherNumbersReplayTheSameGraph) {
  for (const Mode mode : {Mode::kLazy, Mode::kEager}) {
    OpStream stream(fixture_.engine, {.mode = mode});
    const Tensor a = stream.FromVector<float>({3}, {1, 2, 4});
    const auto captures_of = [&](const auto& op) {
      const int64_t before = stream.stats().captures;
      for (int i = 0; i < 10; ++i) op(static_cast<float>(i));
      return stream.stats().captures - before;
    };
    EXPECT_EQ(
        captures_of([&](float v) { EXPECT_THAT(ValuesOf(a * v), ElementsAre(v, 2 * v, 4 * v)); }),
        1);
    EXPECT_EQ(captures_of(
                  [&](float v) { EXPECT_THAT(ValuesOf(v - a), ElementsAre(v - 1, v - 2, v - 4)); }),
              1);
    EXPECT_EQ(captures_of([&](float v) {
                EXPECT_THAT(ValuesOf(Pow(a, v / 2 - 1)),
                            ElementsAre(1, FloatNear(std::pow(2, v / 2 - 1), 1e-4),
                                        FloatNear(std::pow(4, v / 2 - 1), 1e-3)));
              }),
              1);
    EXPECT_EQ(captures_of([&](float v) {
                EXPECT_THAT(ValuesOf(Where(Greater(a, v), a, v)),
                            ElementsAre(std::max(1.0f, v), std::max(2.0f, v), std::max(4.0f, v)));
              }),
              mode == Mode::kLazy ? 1 : 2);
  }
}

TEST_F(LazyTest, NumbersThatAFusionReadsAreConstantsAndOthersStayInputs) {
  const Tensor a = stream_.FromVector<float>({2, 8}, Numbers(16, 1));
  // `v` is read by nothing but the last Mul; the root of two makes the rest a GELU.
  const auto bent_gelu = [&](float v, float root) {
    // The steps are gone when the value is asked for: else they are results, which nothing joins.
    const Tensor bent = Tanh(a * 0.5 * (Erf(a / root) + 1)) * v;
    return ValuesOf(bent);
  };
  for (int i = 1; i <= 5; ++i) {
    const float v = 0.5f * static_cast<float>(i);
    EXPECT_NEAR(bent_gelu(v, 1.4142135f)[3], v * std::tanh(ValuesOf(Gelu(a))[3]), 1e-4) << v;
  }
  const int64_t captures = stream_.stats().captures;
  EXPECT_EQ(captures, 2);  // and Gelu itself
  // A number that a fusion has read is another graph where it differs.
  const float x = ValuesOf(a * 1)[3];
  EXPECT_NEAR(bent_gelu(2.0f, 1.0f)[3], 2 * std::tanh(x * 0.5F * (std::erf(x) + 1)), 1e-4);
  EXPECT_EQ(stream_.stats().captures, 4);  // and a * 1
}

TEST_F(LazyTest, ProgramsBeyondTheLimitGoAndComeBack) {
  OpStream stream(fixture_.engine, {.mode = Mode::kEager, .max_programs = 2});
  for (int round = 0; round < 2; ++round) {
    for (int64_t size = 1; size <= 3; ++size) {
      const Tensor a = stream.FromVector<float>({size}, std::vector<float>(size, 1));
      EXPECT_THAT(ValuesOf(a + 1), testing::Each(2));
    }
  }
  EXPECT_EQ(stream.stats().evictions, 4);
}

TEST_F(LazyTest, ManyKindsOfOpsGiveWhatTheyShould) {
  const Tensor x = stream_.FromVector<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(ValuesOf(Transpose(x, {1, 0})), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(ValuesOf(Sum(x, {1}, false)), ElementsAre(6, 15));
  EXPECT_THAT(ValuesOf(Mean(x)), ElementsAre(3.5));
  EXPECT_THAT(ValuesOf(Reshape(x, {3, -1})), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(ValuesOf(Slice(x, {1}, {3}, {1})), ElementsAre(2, 3, 5, 6));
  EXPECT_THAT(ValuesOf(Concat({x, x}, 0)).size(), 12);
  EXPECT_THAT(ValuesOf(Gather(x, std::vector<int64_t>{1}, 0)), ElementsAre(4, 5, 6));
  EXPECT_THAT(ValuesOf(Where(Greater(x, 3), x, 0)), ElementsAre(0, 0, 0, 4, 5, 6));
  EXPECT_THAT(ValuesOf(MatMul(x, Transpose(x, {1, 0}))), ElementsAre(14, 32, 32, 77));
  EXPECT_THAT(*Cast(x, DType::kInt64).ToVector<int64_t>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(ValuesOf(-x + Max(x, 4)), ElementsAre(3, 2, 1, 0, 0, 0));
}

TEST_F(LazyTest, RegisteredOpsAreCalledByName) {
  const auto shape = SameShapeAsFirst;
  const auto plus = [](float number) {
    return [number](const KernelContext& context) {
      for (int64_t i = 0; i < context.inputs[0].num_elements(); ++i) {
        context.outputs[0].as<float>()[i] = context.inputs[0].as<float>()[i] + number;
      }
      return absl::OkStatus();
    };
  };
  ASSERT_TRUE(RegisterOp({.domain = "lazytest",
                          .name = "PlusTen",
                          .elementwise = true,
                          .shape = shape,
                          .kernel = plus(10)})
                  .ok());
  ASSERT_TRUE(
      RegisterOp({.domain = "lazytest", .name = "HostTen", .shape = shape, .kernel = plus(10)})
          .ok());
  const Tensor a = stream_.FromVector<float>({2}, {1, 2});
  EXPECT_THAT(ValuesOf(Op("lazytest.PlusTen", {a * 2}) + 1), ElementsAre(13, 15));
  EXPECT_THAT(ValuesOf(Op("lazytest.HostTen", {a * 2}) + 1), ElementsAre(13, 15));
  CapturedGraph graph;
  {
    Capture capture(stream_, graph);
    capture.Output("y", Op("lazytest.PlusTen", {a}));
  }
  ASSERT_TRUE(graph.Replay().ok()) << graph.status();
  EXPECT_THAT(graph.output<float>("y"), ElementsAre(11, 12));
  {
    Capture capture(stream_, graph);
    capture.Output("y", Op("lazytest.HostTen", {a}));
  }
  EXPECT_THAT(graph.status().message(), HasSubstr("not supported during capture"));
  EXPECT_THAT(Op("lazytest.Absent", {a}).status().message(), HasSubstr("RegisterOp"));
}

}  // namespace
}  // namespace reprise::lazy
