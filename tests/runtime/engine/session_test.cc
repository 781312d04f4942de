// Sessions: a model bound to memory; models from bytes and graphs; op by op; precision by node.
#include "runtime/engine/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "runtime/engine/graph_model.h"
#include "runtime/ops/custom/registered_op.h"
#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

using Proto = onnx::TensorProto;

std::vector<float> Numbers(size_t count, uint32_t seed) {
  std::vector<float> numbers(count);
  for (float& number : numbers) {
    seed = seed * 1664525u + 1013904223u;
    number = static_cast<float>(seed >> 8) / (1 << 24) - 0.5f;
  }
  return numbers;
}

// y = relu(x a) b, of `width` columns; the products are called /first/MatMul and /second/MatMul.
ModelBuilder TwoProducts(int64_t width) {
  ModelBuilder b;
  b.Input("x", {"batch", std::to_string(width)});
  b.Floats("a", {width, width}, Numbers(width * width, 1));
  b.Floats("b", {width, width}, Numbers(width * width, 2));
  b.Node("MatMul", {"x", "a"}, {"h"}, "/first/MatMul");
  b.Node("Relu", {"h"}, {"r"}, "/first/Relu");
  b.Node("MatMul", {"r", "b"}, {"y"}, "/second/MatMul");
  b.Output("y");
  return b;
}

class SessionTest : public testing::Test {
 protected:
  std::shared_ptr<Model> Load(const ModelBuilder& builder, ModelOptions options = {}) {
    options.id = {"m", 1};
    auto loaded = fixture_.engine.LoadBytes(std::move(options), builder.Bytes());
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? *loaded : nullptr;
  }
  // Returns the answer to one row of made-up numbers.
  std::vector<float> Answer(const std::shared_ptr<Model>& model, int64_t width) {
    const std::vector<float> x = Numbers(width, 7);
    const Response response =
        fixture_.engine.RunOne(*model, {.inputs = {{{1, width}, x.data()}}}, *fixture_.stream);
    EXPECT_TRUE(response.status.ok()) << response.status;
    if (!response.status.ok()) return {};
    std::vector<float> y(width);
    std::memcpy(y.data(), response.outputs[0].bytes.data(), width * sizeof(float));
    return y;
  }

  EngineFixture fixture_{/*threads=*/2};
};

TEST_F(SessionTest, ReplaysWithoutAnArgumentAtAddressesThatStay) {
  const auto model = Load(TwoProducts(32));
  auto session = fixture_.engine.Bind(model, {{"batch", 2}});
  ASSERT_TRUE(session.ok()) << session.status();
  const absl::Span<float> x = (*session)->input<float>("x");
  const absl::Span<const float> y = (*session)->output<float>("y");
  ASSERT_THAT(x, SizeIs(64));
  ASSERT_THAT(y, SizeIs(64));
  const std::vector<float> row = Numbers(32, 7);
  std::copy(row.begin(), row.end(), x.begin());
  std::copy(row.begin(), row.end(), x.begin() + 32);
  for (int round = 0; round < 3; ++round) ASSERT_TRUE((*session)->Replay().ok());
  EXPECT_EQ((*session)->replays(), 3);
  const std::vector<float> expected = Answer(model, 32);
  for (size_t i = 0; i < 64; ++i) EXPECT_NEAR(y[i], expected[i % 32], 1e-4);
  EXPECT_EQ(y.data(), (*session)->output<float>("y").data());
  EXPECT_TRUE((*session)->input<int64_t>("x").empty());
}

TEST_F(SessionTest, SizesAndNamesThatAreWrongAreNamed) {
  const auto model = Load(TwoProducts(32));
  EXPECT_THAT(fixture_.engine.Bind(model, {}).status().message(), HasSubstr("'batch'"));
  EXPECT_THAT(fixture_.engine.Bind(model, {{"batch", 1}, {"length", 3}}).status().message(),
              AllOf(HasSubstr("'length'"), HasSubstr("'batch'")));
  auto session = fixture_.engine.Bind(model, {{"batch", 1}});
  ASSERT_TRUE(session.ok());
  float few[3];
  EXPECT_THAT((*session)->PlaceOutput("y", few, sizeof(few)).message(),
              AllOf(HasSubstr("128"), HasSubstr("12")));
  EXPECT_THAT((*session)->PlaceInput("z", few, sizeof(few)).message(), HasSubstr("'x'"));
}

TEST_F(SessionTest, IntegersAreCopiedAndWrongOnesNameTheirInput) {
  ModelBuilder b;
  b.Input("ids", {"batch"}, Proto::INT64);
  b.Floats("table", {4, 2}, {0, 1, 10, 11, 20, 21, 30, 31});
  b.Node("Gather", {"table", "ids"}, {"y"}, "look");
  b.Output("y");
  auto session = fixture_.engine.Bind(Load(b), {{"batch", 2}});
  ASSERT_TRUE(session.ok()) << session.status();
  std::vector<int64_t> ids = {3, 1};
  std::vector<float> y(4);
  ASSERT_TRUE((*session)->PlaceInput("ids", ids.data(), 16).ok());
  ASSERT_TRUE((*session)->PlaceOutput("y", y.data(), 16).ok());
  ASSERT_TRUE((*session)->Replay().ok());
  EXPECT_THAT(y, ElementsAre(30, 31, 10, 11));
  ids[1] = 9;
  EXPECT_THAT((*session)->Replay().message(), AllOf(HasSubstr("'ids'"), HasSubstr("9")));
  ids[1] = 0;
  ASSERT_TRUE((*session)->Replay().ok());
  EXPECT_THAT(y, ElementsAre(30, 31, 0, 1));
}

TEST_F(SessionTest, GraphsThatAreNoneAreRefused) {
  Graph graph;
  EXPECT_FALSE(ModelOfGraph(graph).ok());
  const ValueId x = graph.AddInput("x", DType::kFloat32, {{.size = 2}});
  graph.AddOutput(graph.node(graph.AddNode("Frobnicate", {x})).outputs[0]);
  EXPECT_THAT(ModelOfGraph(graph).status().message(), HasSubstr("Frobnicate"));
}

TEST_F(SessionTest, OpByOpAnswersWithinTheBoundAndCapturesNothing) {
  const auto captured = Load(TwoProducts(64));
  const std::vector<float> expected = Answer(captured, 64);
  const auto eager = Load(TwoProducts(64), {.capture = CapturePolicy::kOff});
  ASSERT_NE(eager->tail(), nullptr);
  EXPECT_THAT(eager->tail()->cuts(), SizeIs(3));
  const std::vector<float> actual = Answer(eager, 64);
  ASSERT_THAT(actual, SizeIs(64));
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_NEAR(actual[i], expected[i], 1e-4 + 1e-4 * std::abs(expected[i]));
  }
  EXPECT_THAT(fixture_.observer.of("m").compiles, SizeIs(0));
  EXPECT_THAT(fixture_.observer.of("m").eager, ElementsAre("MatMul", "Relu", "MatMul"));
  // Another model's ops are the same, and so are their recipes.
  const size_t held = fixture_.engine.ListEager().size();
  Answer(Load(TwoProducts(64), {.capture = CapturePolicy::kOff}), 64);
  EXPECT_LE(held, 4);  // an empty front among them
  EXPECT_EQ(fixture_.engine.ListEager().size(), held);
  EXPECT_THAT(fixture_.engine.Bind(eager, {{"batch", 1}}).status().message(),
              HasSubstr("cannot be bound"));
}

TEST_F(SessionTest, RulesSayWhichProductsRound) {
  const int64_t width = 64;
  const std::vector<float> exact = Answer(Load(TwoProducts(width)), width);
  const auto with = [&](const char* rules) {
    auto parsed = PrecisionRules::Parse(rules);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    return Answer(Load(TwoProducts(width), {.precision_ops = *parsed}), width);
  };
  const std::vector<float> all = with("bf16: MatMul");
  const std::vector<float> first = with("bf16: /first/*");
  const std::vector<float> second = with("bf16: MatMul; exact: /first/*");
  EXPECT_NE(all, exact);
  EXPECT_NE(first, exact);
  EXPECT_NE(second, exact);
  EXPECT_NE(first, second);
  EXPECT_EQ(with("bf16: Conv"), exact);
  EXPECT_EQ(with("exact: MatMul"), exact);
  EXPECT_EQ(with("bf16: /first/*, /second/*"), all);
  EXPECT_EQ(Answer(Load(TwoProducts(width), {.precision = Precision::kBf16}), width), all);
}

TEST_F(SessionTest, AModelIsCutAtAnOpOfTheHost) {
  ModelBuilder b;
  b.Input("x", {"batch", "4"});
  b.Floats("two", {}, {2});
  b.Node("Mul", {"x", "two"}, {"h"});
  b.Node("Shift", {"h"}, {"s"}, "shift", "sessiontest");
  auto* import = b.model().add_opset_import();
  import->set_domain("sessiontest");
  import->set_version(1);
  b.Node("Mul", {"s", "two"}, {"y"});
  b.Output("y");
  const auto refused = fixture_.engine.LoadBytes({.id = {"m", 1}}, b.Bytes());
  EXPECT_THAT(std::string(refused.status().message()),
              AllOf(HasSubstr("Shift"), HasSubstr("--op-library")));
  ASSERT_TRUE(RegisterOp({.domain = "sessiontest",
                          .name = "Shift",
                          .shape = SameShapeAsFirst,
                          .kernel =
                              [](const KernelContext& context) {
                                const int64_t count = context.inputs[0].num_elements();
                                for (int64_t i = 0; i < count; ++i) {
                                  context.outputs[0].as<float>()[i] =
                                      context.inputs[0].as<float>()[i] + 100;
                                }
                                return absl::OkStatus();
                              }})
                  .ok());
  const auto model = Load(b);
  ASSERT_NE(model, nullptr);
  ASSERT_NE(model->tail(), nullptr);
  EXPECT_THAT(model->tail()->cuts()[0].why, HasSubstr("cannot be cut"));
  const std::vector<float> x = {1, 2, 3, 4};
  const Response response =
      fixture_.engine.RunOne(*model, {.inputs = {{{1, 4}, x.data()}}}, *fixture_.stream);
  ASSERT_TRUE(response.status.ok()) << response.status;
  EXPECT_EQ(reinterpret_cast<const float*>(response.outputs[0].bytes.data())[3], 216);
}

}  // namespace
}  // namespace reprise
