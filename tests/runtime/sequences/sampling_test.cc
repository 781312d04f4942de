#include "runtime/sequences/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <utility>

namespace reprise {
namespace {

using ::testing::HasSubstr;

Sampler Make(SamplingOptions options, uint64_t stream = 0) {
  EXPECT_TRUE(options.Settle(/*vocabulary=*/100, {}).ok());
  return Sampler(std::make_shared<const SamplingOptions>(std::move(options)), stream);
}

std::vector<int64_t> Draws(const SamplingOptions& options, std::vector<float> scores, int count,
                           uint64_t stream = 0) {
  Sampler sampler = Make(options, stream);
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

// The nucleus of a long vocabulary, whose weights fall slowly, is found part by part.
TEST(SamplingTest, TopPOfALongVocabularyKeepsTheFewestThatMakeItUp) {
  constexpr int64_t kIds = 5000;
  std::vector<float> scores;
  for (int64_t id = 0; id < kIds; ++id) {
    scores.push_back(-static_cast<float>((id * 1717) % kIds) / 700);
  }
  std::vector<std::pair<float, int64_t>> best;
  double total = 0;
  for (int64_t id = 0; id < kIds; ++id) {
    best.emplace_back(-scores[id], id);
    total += std::exp(scores[id]);
  }
  std::sort(best.begin(), best.end());
  for (const float part : {0.02f, 0.3f, 0.9f}) {
    std::set<int64_t> nucleus;
    double sum = 0;
    for (const auto& [score, id] : best) {
      if (sum >= part * total) break;
      sum += std::exp(-score);
      nucleus.insert(id);
    }
    const auto ids = Draws({.top_p = part, .seed = 3}, scores, 4000);
    const std::set<int64_t> drawn(ids.begin(), ids.end());
    EXPECT_TRUE(std::includes(nucleus.begin(), nucleus.end(), drawn.begin(), drawn.end())) << part;
    if (part < 0.1f) {
      EXPECT_EQ(drawn, nucleus);
    }
  }
}

TEST(SamplingTest, PenaltiesAndBiasMoveTheBest) {
  EXPECT_EQ(Draws({.temperature = 0, .frequency_penalty = 1.5}, {2, 1.9f, 0}, 3),
            (std::vector<int64_t>{0, 1, 0}));
  EXPECT_EQ(Draws({.temperature = 0, .logit_bias = {{2, 5.0f}}}, {2, 1, 0}, 1),
            (std::vector<int64_t>{2}));
  Sampler sampler = Make({.temperature = 0, .repetition_penalty = 2});
  sampler.AddPrompt(0);
  std::vector<float> scores = {2, 1.5f};
  EXPECT_EQ(sampler.Draw(absl::MakeSpan(scores))->id, 1);
}

TEST(SamplingTest, StopIdsAreNotDrawnBeforeMinTokens) {
  Sampler sampler = Make({.min_tokens = 1, .temperature = 0, .stop_ids = {1}});
  for (const int64_t expected : {0, 1}) {
    std::vector<float> scores = {1, 2};
    EXPECT_EQ(sampler.Draw(absl::MakeSpan(scores))->id, expected);
  }
}

TEST(SamplingTest, LogprobsAreThoseOfTheModelsOwnScores) {
  Sampler sampler = Make({.temperature = 0, .logit_bias = {{1, 9.0f}}, .logprobs = 1});
  std::vector<float> scores = {0, 0};
  const auto token = sampler.Draw(absl::MakeSpan(scores));
  EXPECT_EQ(token->id, 1);
  EXPECT_NEAR(token->logprob, std::log(0.5), 1e-6);
  ASSERT_EQ(token->best.size(), 1u);
  EXPECT_EQ(token->best[0].id, 0);
}

TEST(SamplingTest, ScoresThatAreNoNumbersFail) {
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    Sampler sampler = Make({});
    std::vector<float> scores = {0, bad};
    EXPECT_FALSE(sampler.Draw(absl::MakeSpan(scores)).ok());
  }
  Sampler sampler = Make({});
  std::vector<float> hidden(3, -std::numeric_limits<float>::infinity());
  EXPECT_FALSE(sampler.Draw(absl::MakeSpan(hidden)).ok());
}

TEST(SamplingTest, AForcedTokenIsDrawnWhateverScoresAndOptionsSay) {
  Sampler sampler = Make({.min_tokens = 3,
                          .temperature = 0,
                          .stop_ids = {2},
                          .logit_bias = {{2, -3e38f}},
                          .allowed_ids = {0, 1},
                          .logprobs = 0});
  std::vector<float> scores = {1, 1, 1};
  const auto token = sampler.Draw(absl::MakeSpan(scores), 2);
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(token->id, 2);
  EXPECT_NEAR(token->logprob, std::log(1.0 / 3), 1e-6);
  EXPECT_EQ(sampler.drawn(), 1);
}

TEST(SamplingTest, OnlyAllowedIdsAreDrawn) {
  const auto ids = Draws({.seed = 1, .allowed_ids = {4, 1, 4}}, {9, 0, 9, 9, 0, 9}, 100);
  EXPECT_EQ(std::set<int64_t>(ids.begin(), ids.end()), (std::set<int64_t>{1, 4}));
}

TEST(SamplingTest, WhereParametersLeaveNothingTheClientIsToldSo) {
  Sampler sampler = Make({.allowed_ids = {1}});
  std::vector<float> scores = {0, -std::numeric_limits<float>::infinity()};
  const absl::Status status = sampler.Draw(absl::MakeSpan(scores)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
}

TEST(SamplingTest, AParameterOutOfRangeIsNamed) {
  const auto why = [](SamplingOptions options, int64_t vocabulary = 10) {
    const absl::Status status = options.Settle(vocabulary, {});
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_EQ(why({.top_p = 1.5f}), "parameter 'top_p' = 1.5 is out of range [0, 1]");
  EXPECT_EQ(why({.stop_ids = {10}}), "parameter 'stop_token_ids' = 10 is out of range [0, 9]");
  EXPECT_EQ(why({.stop_ids = std::vector<int64_t>(11, 1)}),
            "parameter 'stop_token_ids' has 11 ids, and the vocabulary 10");
  EXPECT_EQ(why({.allowed_ids = std::vector<int64_t>(11, 1)}),
            "parameter 'allowed_token_ids' has 11 ids, and the vocabulary 10");
  EXPECT_EQ(why({.logit_bias = {{1, 0.0f}, {2, 0.0f}}}, 1),
            "parameter 'logit_bias' has 2 ids, and the vocabulary 1");
  EXPECT_THAT(why({.logit_bias = {{3, -std::numeric_limits<float>::infinity()}}}),
              HasSubstr("for id 3"));
  SamplingOptions usual;
  EXPECT_TRUE(usual.Settle(10, {}).ok());
}

TEST(SamplingTest, TheModelsOwnEndsAreStopIdsUnlessTheyAreIgnored) {
  SamplingOptions options = {.stop_ids = {7, 3, 7}};
  ASSERT_TRUE(options.Settle(10, {5, 3, 12}).ok());
  EXPECT_EQ(options.stop_ids, (std::vector<int64_t>{3, 5, 7}));
  EXPECT_TRUE(options.IsStop(5));
  EXPECT_FALSE(options.IsStop(4));
  SamplingOptions ignoring = {.stop_ids = {7}, .ignore_eos = true};
  ASSERT_TRUE(ignoring.Settle(10, {5}).ok());
  EXPECT_FALSE(ignoring.IsStop(5));
}

TEST(SamplingTest, ListsThatLeaveNoTokenAreRefusedWithTheirNumbers) {
  SamplingOptions options = {.min_tokens = 3, .stop_ids = {5, 6}, .allowed_ids = {5, 6}};
  ASSERT_TRUE(options.Settle(10, {}).ok());
  EXPECT_EQ(options.CheckAnyLeft(10, {}, /*stops_too=*/true).message(),
            "no token is left to draw: each of the 2 allowed ids would end the answer before "
            "'min_tokens' = 3");
  EXPECT_TRUE(options.CheckAnyLeft(10, {}, /*stops_too=*/false).ok());
  EXPECT_EQ(options.CheckAnyLeft(10, {6, 5}, /*stops_too=*/false).message(),
            "no token is left to draw: each of the 2 allowed ids is one that the model never "
            "draws");
  SamplingOptions all = {.min_tokens = 1, .stop_ids = {0, 1, 2}};
  ASSERT_TRUE(all.Settle(4, {}).ok());
  EXPECT_TRUE(all.CheckAnyLeft(4, {}, true).ok());
  EXPECT_FALSE(all.CheckAnyLeft(3, {}, true).ok());
  EXPECT_FALSE(all.CheckAnyLeft(4, {3}, true).ok());
}

}  // namespace
}  // namespace reprise
