#include "runtime/sequences/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace reprise {
namespace {

std::vector<int64_t> Draws(const SamplingOptions& options, std::vector<float> scores, int count,
                           uint64_t stream = 0) {
  Sampler sampler(options, {}, stream);
  std::vector<int64_t> ids;
  for (int i = 0; i < count; ++i) {
    std::vector<float> own = scores;
    const auto token = sampler.Draw(absl::MakeSpan(own));
    EXPECT_TRUE(token.ok());
    ids.push_back(token->id);
  }
  return ids;
}

TEST(SamplingTest, TemperatureZeroTakesTheBestAndTheLowestOfEquals) {
  EXPECT_EQ(Draws({.temperature = 0}, {1, 3, 3, 2}, 2), (std::vector<int64_t>{1, 1}));
}

TEST(SamplingTest, TheSameSeedDrawsTheSameAndAnswersDrawApart) {
  const SamplingOptions options = {.seed = 5};
  const std::vector<float> scores(50, 0.0f);
  EXPECT_EQ(Draws(options, scores, 20), Draws(options, scores, 20));
  EXPECT_NE(Draws(options, scores, 20), Draws(options, scores, 20, 1));
  EXPECT_NE(Draws(options, scores, 20), Draws({.seed = 6}, scores, 20));
}

TEST(SamplingTest, DrawsFollowTheWeights) {
  const auto ids = Draws({.seed = 1}, {std::log(0.7f), std::log(0.3f)}, 4000);
  const double share = static_cast<double>(std::count(ids.begin(), ids.end(), 0)) / 4000;
  EXPECT_NEAR(share, 0.7, 0.03);
}

TEST(SamplingTest, TopKTopPAndMinPLeaveOthersOut) {
  const std::vector<float> scores = {std::log(0.5f), std::log(0.3f), std::log(0.15f),
                                     std::log(0.05f)};
  const auto drawn = [&](const SamplingOptions& options) {
    const auto ids = Draws(options, scores, 500);
    return std::set<int64_t>(ids.begin(), ids.end());
  };
  EXPECT_EQ(drawn({.top_k = 2, .seed = 1}), (std::set<int64_t>{0, 1}));
  EXPECT_EQ(drawn({.top_p = 0.75, .seed = 1}), (std::set<int64_t>{0, 1}));
  EXPECT_EQ(drawn({.min_p = 0.25, .seed = 1}), (std::set<int64_t>{0, 1, 2}));
  EXPECT_EQ(drawn({.seed = 1}), (std::set<int64_t>{0, 1, 2, 3}));
}

TEST(SamplingTest, PenaltiesAndBiasMoveTheBest) {
  EXPECT_EQ(Draws({.temperature = 0, .frequency_penalty = 1.5}, {2, 1.9f, 0}, 3),
            (std::vector<int64_t>{0, 1, 0}));
  EXPECT_EQ(Draws({.temperature = 0, .logit_bias = {{2, 5.0f}}}, {2, 1, 0}, 1),
            (std::vector<int64_t>{2}));
  Sampler sampler({.temperature = 0, .repetition_penalty = 2}, {}, 0);
  sampler.AddPrompt(0);
  std::vector<float> scores = {2, 1.5f};
  EXPECT_EQ(sampler.Draw(absl::MakeSpan(scores))->id, 1);
}

TEST(SamplingTest, StopIdsAreNotDrawnBeforeMinTokens) {
  Sampler sampler({.min_tokens = 1, .temperature = 0}, {1}, 0);
  for (const int64_t expected : {0, 1}) {
    std::vector<float> scores = {1, 2};
    EXPECT_EQ(sampler.Draw(absl::MakeSpan(scores))->id, expected);
  }
}

TEST(SamplingTest, LogprobsAreThoseOfTheModelsOwnScores) {
  Sampler sampler({.temperature = 0, .logit_bias = {{1, 9.0f}}, .logprobs = 1}, {}, 0);
  std::vector<float> scores = {0, 0};
  const auto token = sampler.Draw(absl::MakeSpan(scores));
  EXPECT_EQ(token->id, 1);
  EXPECT_NEAR(token->logprob, std::log(0.5), 1e-6);
  ASSERT_EQ(token->best.size(), 1u);
  EXPECT_EQ(token->best[0].id, 0);
}

TEST(SamplingTest, ScoresThatAreNoNumbersFail) {
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    Sampler sampler({}, {}, 0);
    std::vector<float> scores = {0, bad};
    EXPECT_FALSE(sampler.Draw(absl::MakeSpan(scores)).ok());
  }
  Sampler sampler({}, {}, 0);
  std::vector<float> hidden(3, -std::numeric_limits<float>::infinity());
  EXPECT_FALSE(sampler.Draw(absl::MakeSpan(hidden)).ok());
}

TEST(SamplingTest, AParameterOutOfRangeIsNamed) {
  const absl::Status status = SamplingOptions{.top_p = 1.5f}.Check(10);
  EXPECT_EQ(status.message(), "parameter 'top_p' = 1.5 is out of range [0, 1]");
  EXPECT_FALSE(SamplingOptions{.stop_ids = {10}}.Check(10).ok());
  EXPECT_TRUE(SamplingOptions{}.Check(10).ok());
}

}  // namespace
}  // namespace reprise
