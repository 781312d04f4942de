// Models that may not be padded, since they quantise by the range of a whole request: packed, each
// request has the very bits that it has alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "runtime/engine/packing/packing.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/masked_mean.h"
#include "tests/testing/quantised_mean.h"

namespace reprise {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class RequestPackingTest : public testing::TestWithParam<int> {
 protected:
  static constexpr char kModel[] = "quantised";
  static constexpr int64_t kLongest = 64;
  static constexpr size_t kInputs = 2;

  RequestPackingTest() : fixture_(/*threads=*/GetParam()) {
    model_ = LoadBytes(fixture_.engine, QuantisedMeanModel(),
                       {.id = {kModel, 1},
                        .buckets = {{"sequence", {16, kLongest}}},
                        .max_batch_tokens = 300,
                        .packing = PackingMode::kAuto});
    exact_ = LoadBytes(fixture_.engine, QuantisedMeanModel(), {.id = {"exact", 1}});
  }
  void SetUp() override { ASSERT_NE(model_->packing(), nullptr) << model_->packing_refusal(); }

  Response Run(const TokenRequest& tokens) {
    return fixture_.engine.RunOne(*model_, tokens.request, *fixture_.stream);
  }
  Response Alone(const TokenRequest& tokens) {
    return fixture_.engine.RunOne(*exact_, tokens.request, *fixture_.stream);
  }

  EngineFixture fixture_;
  std::shared_ptr<Model> model_, exact_;
};

void ExpectSameBits(const Response& got, const Response& want) {
  ASSERT_TRUE(got.status.ok()) << got.status;
  ASSERT_TRUE(want.status.ok()) << want.status;
  ASSERT_EQ(got.outputs.size(), want.outputs.size());
  for (size_t output = 0; output < want.outputs.size(); ++output) {
    ASSERT_EQ(got.outputs[output].shape, want.outputs[output].shape);
    ASSERT_EQ(got.outputs[output].bytes, want.outputs[output].bytes) << "output " << output;
  }
}

TEST_P(RequestPackingTest, NoAxisIsPaddedAndItSaysWhyRequestsArePacked) {
  for (const ModelAxis& axis : model_->axes()) {
    EXPECT_FALSE(axis.certificate.certified) << axis.label;
    EXPECT_THAT(axis.certificate.reason, HasSubstr("DynamicQuantizeLinear"));
  }
  EXPECT_THAT(model_->packing_reason(),
              AllOf(HasSubstr("2 nodes quantise by the range of a whole request"),
                    HasSubstr("tokens_quantise")));
  EXPECT_TRUE(model_->batches_requests());
  EXPECT_THAT(model_->BucketLabels(), testing::Contains("t300"));
}

TEST_P(RequestPackingTest, RandomMixedBatchesHaveTheBitsOfTheRequestsAlone) {
  std::mt19937 random(23);
  const auto below = [&](int64_t n) {
    return std::uniform_int_distribution<int64_t>(0, n - 1)(random);
  };
  for (int round = 0; round < 30; ++round) {
    BatchPlan plan(*model_);
    std::vector<std::unique_ptr<TokenRequest>> together;
    std::vector<const Request*> requests;
    while (!plan.full()) {
      const int64_t length = 1 + (below(2) == 0 ? below(8) : below(kLongest));
      auto one = std::make_unique<TokenRequest>(1 + below(3), length, random() % 1000, kInputs);
      const auto measured = model_->Measure(one->request);
      ASSERT_TRUE(measured.ok()) << measured.status();
      EXPECT_TRUE(model_->Packs(*measured));
      if (!plan.TryAdd(*measured)) break;
      requests.push_back(&one->request);
      together.push_back(std::move(one));
    }
    EXPECT_GT(requests.size(), 1);
    const std::vector<Response> responses = fixture_.engine.Run(plan, requests, *fixture_.stream);
    for (size_t i = 0; i < requests.size(); ++i) {
      ExpectSameBits(responses[i], Alone(*together[i]));
      EXPECT_EQ(responses[i].info.batch, responses[0].info.batch);
      if (HasFatalFailure()) {
        FAIL() << "request " << ShapeToString(requests[i]->inputs[0].shape) << ", " << i << " of "
               << requests.size() << " in " << responses[i].info.bucket;
      }
    }
  }
  const Observed& observed = fixture_.observer.of(kModel);
  EXPECT_EQ(observed.elements[0].padded, 0);
  EXPECT_EQ(observed.elements[1].padded, 0);
}

// Its rows share a range: in two replays each half would have one of its own.
TEST_P(RequestPackingTest, RequestIsNeverSplitByRows) {
  for (const auto& [rows, length] :
       std::vector<std::pair<int64_t, int64_t>>{{32, 2}, {33, 2}, {4, 64}, {5, 64}, {9, 40}}) {
    const TokenRequest many(rows, length, rows, kInputs);
    const Response response = Run(many);
    ExpectSameBits(response, Alone(many));
    const bool fits = rows <= 32 && rows * length <= 300;
    EXPECT_EQ(response.info.bucket == "exact", !fits) << rows << " of " << length;
  }
}

TEST_P(RequestPackingTest, LongRowsRunAtTheirOwnSizesAndAlone) {
  const TokenRequest too_long(1, kLongest + 1, 1, kInputs), small(1, 8, 2, kInputs);
  const Response response = Run(too_long);
  EXPECT_EQ(response.info.bucket, "exact");
  ExpectSameBits(response, Alone(too_long));
  const RequestShape long_shape = *model_->Measure(too_long.request);
  const RequestShape small_shape = *model_->Measure(small.request);
  BatchPlan plan(*model_);
  ASSERT_TRUE(plan.TryAdd(small_shape));
  EXPECT_FALSE(plan.TryAdd(long_shape));
  BatchPlan longs(*model_);
  ASSERT_TRUE(longs.TryAdd(long_shape));
  EXPECT_FALSE(longs.TryAdd(long_shape));
  const RequestShape* waiting[] = {&long_shape, &long_shape, &small_shape};
  EXPECT_THAT(BatchPlan(*model_).Choose(waiting), testing::ElementsAre(0));
}

TEST_P(RequestPackingTest, OnlyNumbersOfTokensAreCaptured) {
  for (int64_t length = 1; length <= kLongest; ++length) Run(TokenRequest(1, length, 1, kInputs));
  for (const std::string& compile : fixture_.observer.of(kModel).compiles) {
    EXPECT_EQ(compile[0], 't') << compile;
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, RequestPackingTest, testing::Values(1, 2));

TEST(RequestPackingRefusalTest, WhatElseMixesRequestsIsNamed) {
  EngineFixture fixture;
  const auto model = LoadBytes(fixture.engine, QuantisedMeanModel(MoreMixing::kOverRows),
                               {.id = {"m", 1}, .packing = PackingMode::kAuto});
  EXPECT_EQ(model->packing(), nullptr);
  EXPECT_FALSE(model->batches_requests());
  EXPECT_THAT(model->packing_refusal(), HasSubstr("over_rows"));
}

TEST(RequestPackingRefusalTest, AnAxisSwitchedOffStaysSo) {
  EngineFixture fixture;
  const auto model =
      LoadBytes(fixture.engine, QuantisedMeanModel(),
                {.id = {"m", 1}, .no_padding = {"batch"}, .packing = PackingMode::kAuto});
  EXPECT_EQ(model->packing(), nullptr);
  EXPECT_THAT(model->packing_refusal(), HasSubstr("config.pbtxt"));
}

}  // namespace
}  // namespace reprise
