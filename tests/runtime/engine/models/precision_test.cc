// Effects of reprise.precision on recipes and answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/engine/types/miss_report.h"
#include "tests/runtime/engine/server_start.h"
#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/masked_mean.h"
#include "tests/testing/real_models.h"

namespace reprise {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kWidth = 48;

// Three products with weights, an activation and a softmax between them, over [batch, 48] rows.
std::string LayersModel() {
  ModelBuilder b;
  b.Input("x", {"batch", "48"}, onnx::TensorProto::FLOAT);
  std::vector<float> weights(kWidth * kWidth);
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(i)) * 0.3);
  }
  for (const char* name : {"w0", "w1", "w2"}) {
    std::rotate(weights.begin(), weights.begin() + 11, weights.end());
    b.Floats(name, {kWidth, kWidth}, weights);
  }
  b.Node("MatMul", {"x", "w0"}, {"a"});
  b.Node("Tanh", {"a"}, {"b"});
  b.Node("MatMul", {"b", "w1"}, {"c"});
  b.Node("Softmax", {"c"}, {"d"});
  b.Node("MatMul", {"d", "w2"}, {"y"});
  b.Output("y");
  return b.Bytes();
}

struct LayersRequest {
  explicit LayersRequest(int64_t rows, int64_t first = 0) : x(rows * kWidth) {
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(std::cos(1.3 * static_cast<double>(i + first * kWidth)));
    }
    request.inputs = {{{rows, kWidth}, x.data()}};
  }
  LayersRequest(const LayersRequest&) = delete;

  std::vector<float> x;
  Request request;
};

double LargestOfDifferences(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max<double>(largest, std::fabs(a[i] - b[i]));
  return largest;
}

std::vector<float> RunOne(EngineFixture& fixture, const Model& model, const Request& request) {
  const Response response = fixture.engine.RunOne(model, request, *fixture.stream);
  EXPECT_TRUE(response.status.ok()) << response.status;
  const std::string& bytes = response.outputs[0].bytes;
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::shared_ptr<Model> LoadLayers(EngineFixture& fixture, const std::string& name,
                                  Precision precision, WeightBits weights = WeightBits::kStored) {
  return LoadBytes(fixture.engine, LayersModel(),
                   {.id = {name, 1}, .precision = precision, .weights = weights});
}

// A way to round, and its bound.
struct RoundingForm {
  Precision precision;
  WeightBits weights;
  double most;  // the largest error of answers of about 1
};
constexpr RoundingForm kForms[] = {
    {Precision::kBf16, WeightBits::kStored, 0.01}, {Precision::kInt8, WeightBits::kStored, 0.03},
    {Precision::kInt8, WeightBits::kInt4, 0.2},    {Precision::kBf16, WeightBits::kInt4, 0.2},
    {Precision::kExact, WeightBits::kInt8, 0.03},  {Precision::kExact, WeightBits::kInt4, 0.2},
    {Precision::kBf16, WeightBits::kInt8, 0.03}};

const Isa kTiers[] = {Isa::kBaseline,   Isa::kAvx2,       Isa::kAvx2Vnni, Isa::kAvx512,
                      Isa::kAvx512Vnni, Isa::kAvx512Bf16, Isa::kAmx};

std::string Words(const RoundingForm& form, Isa isa) {
  return absl::StrCat(PrecisionName(form.precision), ", weights ", WeightBitsName(form.weights),
                      ", ", IsaName(isa));
}

TEST(PrecisionTest, AnswersAreCloseToTheExactOnesAndNotEqual) {
  for (const Isa isa : kTiers) {
    if (UsableIsa(isa) != isa) continue;
    EngineFixture fixture(1, isa);
    const auto exact = LoadLayers(fixture, "exact", Precision::kExact);
    const LayersRequest request(5);
    const std::vector<float> truth = RunOne(fixture, *exact, request.request);
    for (const RoundingForm& form : kForms) {
      const std::string words = Words(form, isa);
      SCOPED_TRACE(words);
      const auto rounded = LoadLayers(fixture, words, form.precision, form.weights);
      const std::vector<float> answer = RunOne(fixture, *rounded, request.request);
      EXPECT_LT(LargestOfDifferences(truth, answer), form.most);
      EXPECT_GT(LargestOfDifferences(truth, answer), 1e-6);
    }
  }
}

TEST(PrecisionTest, HowManyProductsRoundIsLoggedOnceALoad) {
  const StartFolder folder(LayersModel());
  for (int start = 0; start < 2; ++start) {  // the second start finds a stored recipe
    ServerStart rounded(folder, {.model = {.id = {"layers", 1}, .precision = Precision::kBf16}});
    const LayersRequest request(4);
    rounded.Run(request.request);
    EXPECT_THAT(rounded.Logged("applies to"),
                ElementsAre("model layers: bf16 applies to 3 of 3 products with weights, and to 0 "
                            "attentions"));
  }
  ServerStart exact(folder, {.model = {.id = {"layers", 1}}});
  EXPECT_TRUE(exact.Logged("applies to").empty());
}

TEST(PrecisionTest, NoBitOfARowDependsOnItsBucketItsMatesOrThreads) {
  for (const Isa isa : kTiers) {
    if (UsableIsa(isa) != isa) continue;
    // The answers of rows, by form and row.
    std::map<std::string, std::map<int64_t, std::vector<float>>> rows;
    for (const int threads : {1, 3}) {
      EngineFixture fixture(threads, isa);
      for (const RoundingForm& form : kForms) {
        // Rows of floats are exact, and promise no more.
        if (form.precision == Precision::kExact) continue;
        const std::string words = Words(form, isa);
        SCOPED_TRACE(testing::Message() << words << ", " << threads << " threads");
        const auto model = LoadLayers(fixture, words, form.precision, form.weights);
        for (const int64_t row : {0, 7, 31}) {
          const LayersRequest one(1, row);
          const std::vector<float> alone = RunOne(fixture, *model, one.request);
          EXPECT_EQ(rows[words].try_emplace(row, alone).first->second, alone) << row;
        }
        const LayersRequest many(32);
        const std::vector<float> all = RunOne(fixture, *model, many.request);
        for (const auto& [row, one] : rows[words]) {
          EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin() + row * kWidth)) << row;
        }
        EXPECT_THAT(fixture.observer.of(words).replays, Contains("b1"));
        EXPECT_THAT(fixture.observer.of(words).replays, Contains("b32"));
      }
    }
  }
}

TEST(PrecisionTest, ModelsOfOneGraphAndTwoPrecisionsShareNoRecipe) {
  EngineFixture fixture;
  const auto exact = LoadLayers(fixture, "exact", Precision::kExact);
  const auto rounded = LoadLayers(fixture, "rounded", Precision::kBf16);
  EXPECT_EQ(*exact->fingerprint().text, *rounded->fingerprint().text);
  const LayersRequest request(4);
  RunOne(fixture, *exact, request.request);
  RunOne(fixture, *rounded, request.request);
  EXPECT_THAT(fixture.observer.of("exact").compiles, ElementsAre("b4 first_request"));
  EXPECT_THAT(fixture.observer.of("rounded").compiles, ElementsAre("b4 first_request"));
  const std::vector<MissRecord> misses = fixture.engine.misses().Since(0, "rounded");
  ASSERT_EQ(misses.size(), 1u);
  EXPECT_EQ(misses[0].nearest, "b4");
  ASSERT_EQ(misses[0].differences.size(), 1u);
  EXPECT_EQ(misses[0].differences[0].field, "precision");
  EXPECT_EQ(misses[0].differences[0].wanted, "bf16");
  EXPECT_EQ(misses[0].differences[0].had, "exact");
  // A third one finds its own records.
  const auto again = LoadLayers(fixture, "again", Precision::kBf16);
  RunOne(fixture, *again, request.request);
  EXPECT_TRUE(fixture.observer.of("again").compiles.empty());
}

TEST(PrecisionTest, RecipesAndCertificatesStoredForOnePrecisionAreNoneOfTheOther) {
  const StartFolder folder(LayersModel());
  const LayersRequest request(4);
  std::string exact;
  {
    ServerStart start(folder, {.model = {.id = {"layers", 1}}});
    exact = start.Run(request.request).outputs[0].bytes;
  }
  const auto rounding = [&](auto&& use) {
    ServerStart start(folder, {.model = {.id = {"layers", 1}, .precision = Precision::kBf16}});
    use(start, start.Run(request.request));
  };
  std::string rounded;
  rounding([&](ServerStart& start, const Response& response) {
    rounded = response.outputs[0].bytes;
    EXPECT_THAT(start.observer.of("layers").compiles, ElementsAre("b4 policy_change"));
    EXPECT_THAT(start.Logged("it was stored for another precision"), testing::SizeIs(1));
    EXPECT_TRUE(start.Logged("loaded certificate").empty());
  });
  EXPECT_NE(rounded, exact);
  rounding([&](ServerStart& start, const Response& response) {
    EXPECT_EQ(response.outputs[0].bytes, rounded);
    EXPECT_TRUE(start.observer.of("layers").compiles.empty());
    EXPECT_THAT(start.Logged("loaded certificate"), testing::SizeIs(1));
    EXPECT_THAT(start.Logged("with precision bf16"), testing::SizeIs(1));
  });
  ServerStart start(folder, {.model = {.id = {"layers", 1}}});
  EXPECT_EQ(start.Run(request.request).outputs[0].bytes, exact);
  EXPECT_TRUE(start.observer.of("layers").compiles.empty());
}

TEST(PrecisionTest, MeasuringLeavesNoExactFormOfTheWeightsBehind) {
  EngineFixture fixture;
  const auto model = LoadLayers(fixture, "rounded", Precision::kBf16);
  EXPECT_EQ(model->owner()->parameters().prepared_bytes(), 0);
  const LayersRequest request(4);
  RunOne(fixture, *model, request.request);
  // 48 x 48 in panels of 32 columns and 64 rows at most, two bytes each.
  EXPECT_LE(model->owner()->parameters().prepared_bytes(), 3 * 64 * 64 * 2);
}

TEST(PrecisionTest, FloatsThatBecomeBytesAreKeptOnce) {
  EngineFixture fixture;
  for (const Precision precision : {Precision::kInt8, Precision::kExact}) {
    const std::string name(PrecisionName(precision));
    const auto model = LoadLayers(fixture, name, precision, WeightBits::kInt8);
    const LayersRequest request(4);
    RunOne(fixture, *model, request.request);
    // 48 x 48 bytes in panels of 48 columns at most, with a factor, a sum and a zero point a
    // column.
    EXPECT_LE(model->owner()->parameters().prepared_bytes(), 3 * (64 * 48 + 64 * 16)) << name;
  }
}

}  // namespace
}  // namespace reprise
