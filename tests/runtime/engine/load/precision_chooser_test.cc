// The choice of the nodes that round, by a bound on the cosine of answers.
#include "runtime/engine/load/precision_chooser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "runtime/engine/load/stored_choice.h"
#include "tests/runtime/engine/server_start.h"
#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/masked_mean.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int64_t kColumns = 64;

Tensor FloatsOf(Shape shape, const std::vector<float>& values) {
  return Tensor::FromVector<float>(DType::kFloat32, std::move(shape), values);
}

// Numbers around 0, the same for the same seed.
std::vector<float> RandomFloats(size_t count, uint32_t seed, float most) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> any(-most, most);
  std::vector<float> floats(count);
  for (float& one : floats) one = any(random);
  return floats;
}

// Three products over [batch, 64]. Before the one that is called "planted" column 0 is multiplied
// by 1e4, and its weights of that column are 0: in bytes the column leaves nothing of all others.
std::string PlantedModel() {
  ModelBuilder b;
  b.Input("x", {"batch", "64"}, onnx::TensorProto::FLOAT);
  constexpr size_t kWeights = kColumns * kColumns;
  b.Floats("w0", {kColumns, kColumns}, RandomFloats(kWeights, 1, 0.3F));
  b.Floats("w1", {kColumns, kColumns}, RandomFloats(kWeights, 2, 0.3F));
  std::vector<float> weights = RandomFloats(kWeights, 3, 0.3F);
  std::fill(weights.begin(), weights.begin() + kColumns, 0.0F);
  b.Floats("w2", {kColumns, kColumns}, weights);
  std::vector<float> scales(kColumns, 1);
  scales[0] = 1e4;
  b.Floats("scales", {kColumns}, scales);
  b.Node("MatMul", {"x", "w0"}, {"a"}, "first");
  b.Node("Tanh", {"a"}, {"b"}, "tanh");
  b.Node("Mul", {"b", "scales"}, {"c"}, "mul");
  b.Node("MatMul", {"c", "w2"}, {"d"}, "planted");
  b.Node("Softmax", {"d"}, {"e"}, "softmax");
  b.Node("Add", {"e", "b"}, {"f"}, "add");
  b.Node("MatMul", {"f", "w1"}, {"g"}, "last");
  b.Node("Add", {"g", "d"}, {"y"}, "sum");
  b.Output("y");
  return b.Bytes();
}

struct PlantedRequest {
  explicit PlantedRequest(int64_t rows, uint32_t seed = 7)
      : x(RandomFloats(static_cast<size_t>(rows * kColumns), seed, 2)) {
    request.inputs = {{{rows, kColumns}, x.data()}};
  }
  PlantedRequest(const PlantedRequest&) = delete;

  std::vector<float> x;
  Request request;
};

ModelOptions OptionsWith(const char* goal, const char* rules = "") {
  return {.id = {"planted", 1},
          .precision_ops = *PrecisionRules::Parse(rules),
          .precision_goal = *PrecisionGoal::Parse(goal)};
}

absl::Status RefusalOf(Engine& engine, const std::string& bytes, ModelOptions options) {
  const TempFolder folder;
  options.path = folder.Write("model.onnx", bytes);
  return engine.Load(std::move(options)).status();
}

const PrecisionChoice::Node& NodeNamed(const Model& model, const std::string& name) {
  for (const PrecisionChoice::Node& node : model.program().choice->nodes) {
    if (node.name == name) return node;
  }
  ADD_FAILURE() << "no node " << name;
  static const PrecisionChoice::Node kNoNode;
  return kNoNode;
}

std::vector<Tensor> AnswerOf(EngineFixture& fixture, const Model& model, const Request& request) {
  const Response response = fixture.engine.RunOne(model, request, *fixture.stream);
  EXPECT_TRUE(response.status.ok()) << response.status;
  const OutputTensor& output = response.outputs[0];
  return {Tensor::Make(DType::kFloat32, output.shape, [&](void* data) {
    std::memcpy(data, output.bytes.data(), output.bytes.size());
  })};
}

// Returns the options with requests of their own: half of the loss that a bound allows is theirs,
// and requests that are made up may lose a tenth of it.
ModelOptions WithRequests(ModelOptions options) {
  options.calibration =
      [](const std::vector<ModelIo>&) -> absl::StatusOr<std::vector<std::vector<Tensor>>> {
    std::vector<float> x(4 * kColumns);
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(1.7F * static_cast<float>(i));
    return std::vector<std::vector<Tensor>>{{FloatsOf({4, kColumns}, x)}};
  };
  return options;
}

TEST(PrecisionChooserTest, ANodeThatCostsMuchStaysExactAndTheBoundHoldsForOtherRequests) {
  EngineFixture fixture;
  const auto exact = LoadBytes(fixture.engine, PlantedModel(), {.id = {"exact", 1}});
  const auto bytes = LoadBytes(fixture.engine, PlantedModel(),
                               {.id = {"bytes", 1}, .precision = Precision::kInt8});
  const auto chosen = LoadBytes(fixture.engine, PlantedModel(), OptionsWith("auto:0.999"));
  ASSERT_NE(chosen->program().choice, nullptr);
  EXPECT_THAT(chosen->program().choice->nodes, SizeIs(3));
  EXPECT_EQ(NodeNamed(*chosen, "planted").precision, Precision::kExact);
  EXPECT_EQ(NodeNamed(*chosen, "first").precision, Precision::kInt8);
  EXPECT_EQ(NodeNamed(*chosen, "last").precision, Precision::kInt8);
  EXPECT_GT(NodeNamed(*chosen, "planted").loss, 10 * NodeNamed(*chosen, "first").loss);
  EXPECT_TRUE(chosen->program().choice->made_up);
  EXPECT_GE(chosen->program().choice->cosine, 0.9999);  // most of the loss is kept back
  for (const uint32_t seed : {11, 12, 13}) {
    const PlantedRequest request(9, seed);
    const std::vector<Tensor> truth = AnswerOf(fixture, *exact, request.request);
    EXPECT_LE(LossOf({truth}, {AnswerOf(fixture, *chosen, request.request)}), 0.001);
    EXPECT_GT(LossOf({truth}, {AnswerOf(fixture, *bytes, request.request)}), 0.001);
    EXPECT_GT(LossOf({truth}, {AnswerOf(fixture, *chosen, request.request)}), 1e-9);
  }
}

TEST(PrecisionChooserTest, AWideBoundLetsAllNodesRoundAndANarrowOneNone) {
  EngineFixture fixture;
  const auto wide =
      LoadBytes(fixture.engine, PlantedModel(), WithRequests(OptionsWith("auto:0.01")));
  const auto narrow = LoadBytes(fixture.engine, PlantedModel(), OptionsWith("auto:0.999999999999"));
  for (const char* name : {"first", "planted", "last"}) {
    EXPECT_EQ(NodeNamed(*wide, name).precision, Precision::kInt8) << name;
    EXPECT_EQ(NodeNamed(*narrow, name).precision, Precision::kExact) << name;
  }
}

TEST(PrecisionChooserTest, RulesCountMoreThanTheChoice) {
  EngineFixture fixture;
  const auto chosen =
      LoadBytes(fixture.engine, PlantedModel(),
                WithRequests(OptionsWith("auto:0.01", "exact: first*; bf16: last*")));
  EXPECT_THAT(chosen->program().choice->nodes, SizeIs(1));
  EXPECT_EQ(NodeNamed(*chosen, "planted").precision, Precision::kInt8);
}

TEST(PrecisionChooserTest, FastNodesWereMeasuredToBeFaster) {
  EngineFixture fixture;
  const auto chosen = LoadBytes(fixture.engine, PlantedModel(), OptionsWith("fast"));
  // Its column loses nothing as bfloat16.
  EXPECT_NE(NodeNamed(*chosen, "planted").precision, Precision::kInt8);
  for (const PrecisionChoice::Node& node : chosen->program().choice->nodes) {
    EXPECT_GT(node.exact_ns, 0) << node.name;
    if (node.precision == Precision::kExact) continue;
    EXPECT_LT(node.chosen_ns, node.exact_ns) << node.name;
  }
  EXPECT_GE(chosen->program().choice->cosine, 0.9995);
}

TEST(PrecisionChooserTest, ABoundThatRulesMissIsRefusedWithTheCosineLeft) {
  EngineFixture fixture;
  const auto load = [&](ModelOptions options) {
    return RefusalOf(fixture.engine, PlantedModel(), std::move(options));
  };
  const absl::Status missed = load(OptionsWith("auto:0.9999", "int8: planted*"));
  EXPECT_EQ(missed.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(missed.message(), HasSubstr("reprise.precision \"auto:0.9999\" cannot be kept"));
  ModelOptions narrow = OptionsWith("auto:0.9999");
  narrow.weights = WeightBits::kInt4;
  EXPECT_THAT(load(std::move(narrow)).message(), HasSubstr("reprise.weights"));
}

TEST(PrecisionChooserTest, RequestsOfAFileAreTakenAndTheirErrorsReturned) {
  EngineFixture fixture;
  ModelOptions options = OptionsWith("auto:0.999");
  options.calibration =
      [](const std::vector<ModelIo>& inputs) -> absl::StatusOr<std::vector<std::vector<Tensor>>> {
    EXPECT_THAT(inputs, SizeIs(1));
    EXPECT_EQ(inputs[0].name, "x");
    return std::vector<std::vector<Tensor>>{
        {FloatsOf({1, kColumns}, std::vector<float>(kColumns, 0.5F))},
        {FloatsOf({2, kColumns}, std::vector<float>(2 * kColumns, -0.25F))}};
  };
  const auto chosen = LoadBytes(fixture.engine, PlantedModel(), options);
  EXPECT_EQ(chosen->program().choice->requests, 2);
  EXPECT_FALSE(chosen->program().choice->made_up);
  options.calibration =
      [](const std::vector<ModelIo>&) -> absl::StatusOr<std::vector<std::vector<Tensor>>> {
    return absl::NotFoundError("no such file");
  };
  const absl::Status missing = RefusalOf(fixture.engine, PlantedModel(), options);
  EXPECT_EQ(missing, absl::NotFoundError("no such file"));
}

TEST(PrecisionChooserTest, AnAnswerWithoutFloatsIsRefused) {
  ModelBuilder b;
  b.Input("x", {"batch", "64"}, onnx::TensorProto::FLOAT);
  b.Floats("w", {kColumns, kColumns}, std::vector<float>(kColumns * kColumns, 0.5F));
  b.Node("MatMul", {"x", "w"}, {"a"}, "product");
  b.Node("ArgMax", {"a"}, {"y"}, "best");
  b.Output("y");
  EngineFixture fixture;
  EXPECT_THAT(RefusalOf(fixture.engine, b.Bytes(), OptionsWith("fast")).message(),
              HasSubstr("no output of floats"));
}

TEST(PrecisionChooserTest, ARestartTakesTheChoiceFromTheStoreAndCapturesNothing) {
  const StartFolder folder(PlantedModel());
  const PlantedRequest request(4);
  std::string answer;
  for (int start = 0; start < 3; ++start) {
    SCOPED_TRACE(start);
    // The third start asks for another bound, and so for another choice.
    ServerStart server(folder, {.model = OptionsWith(start < 2 ? "fast:0.999" : "fast:0.99")});
    const Response response = server.Run(request.request);
    EXPECT_THAT(server.Logged(start == 1 ? "requests, loaded in" : "requests, chosen in"),
                SizeIs(1));
    if (start == 1) {
      EXPECT_THAT(server.observer.of("planted").compiles, IsEmpty());
      EXPECT_EQ(response.outputs[0].bytes, answer);
    }
    answer = response.outputs[0].bytes;
  }
}

TEST(PrecisionChooserTest, LossIsThatOfTheWorstRow) {
  std::vector<float> truth(16, 1.0F), answer(16, 1.0F);
  EXPECT_NEAR(LossOf({{FloatsOf({2, 8}, truth)}}, {{FloatsOf({2, 8}, answer)}}), 0, 1e-12);
  for (size_t i = 8; i < 12; ++i) answer[i] = 0;  // half of the second row
  EXPECT_NEAR(LossOf({{FloatsOf({2, 8}, truth)}}, {{FloatsOf({2, 8}, answer)}}), 1 - std::sqrt(0.5),
              1e-6);
  // Rows of four numbers count together: twelve of sixteen are left.
  EXPECT_NEAR(LossOf({{FloatsOf({4, 4}, truth)}}, {{FloatsOf({4, 4}, answer)}}),
              1 - std::sqrt(0.75), 1e-6);
  // So do those of several requests.
  EXPECT_NEAR(LossOf({{FloatsOf({1, 2}, {3, 4})}, {FloatsOf({1, 2}, {0, 5})}},
                     {{FloatsOf({1, 2}, {3, 4})}, {FloatsOf({1, 2}, {5, 0})}}),
              0.5, 1e-6);
}

TEST(PrecisionChooserTest, OneNumberThatIsNoneIsALoss) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NEAR(LossOf({{FloatsOf({2}, {nan, 1})}}, {{FloatsOf({2}, {nan, 1})}}), 0, 1e-12);
  EXPECT_EQ(LossOf({{FloatsOf({2}, {1, 1})}}, {{FloatsOf({2}, {nan, 1})}}), 2);
  EXPECT_EQ(LossOf({{FloatsOf({2}, {0, 0})}}, {{FloatsOf({2}, {0, 1})}}), 1);
}

TEST(StoredChoiceTest, AChoiceIsFoundAgainAndNoneOfAnotherKey) {
  const StoredModelKey key = {"graph", "parameters", "settings", "device", "1"};
  const PrecisionChoice choice = {.nodes = {{.name = "a", .precision = Precision::kInt8},
                                            {.name = "b", .precision = Precision::kExact}},
                                  .cosine = 0.9997,
                                  .requests = 3,
                                  .made_up = true};
  const std::string bytes = EncodeChoice(key, {"m", 1}, choice, 1000);
  const auto found = DecodeChoice(bytes, key);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_THAT(found->nodes, SizeIs(2));
  EXPECT_EQ(found->nodes[0].name, "a");
  EXPECT_EQ(found->nodes[0].precision, Precision::kInt8);
  EXPECT_EQ(found->nodes[1].precision, Precision::kExact);
  EXPECT_DOUBLE_EQ(found->cosine, 0.9997);
  EXPECT_EQ(found->requests, 3);
  EXPECT_TRUE(found->made_up);
  for (StoredModelKey other : {StoredModelKey{"x", "parameters", "settings", "device", "1"},
                               StoredModelKey{"graph", "parameters", "x", "device", "1"},
                               StoredModelKey{"graph", "x", "settings", "device", "1"}}) {
    EXPECT_EQ(DecodeChoice(bytes, other).status().code(), absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_TRUE(absl::IsDataLoss(DecodeChoice("no message", key).status()));
  EXPECT_TRUE(absl::IsDataLoss(DecodeChoice(EncodeFindings(key, {"m", 1}, {}, 0), key).status()));
}

}  // namespace
}  // namespace reprise
