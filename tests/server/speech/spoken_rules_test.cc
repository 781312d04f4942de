#include "server/speech/spoken_rules.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "server/speech/spoken_window.h"

namespace reprise {
namespace {

// Ids 0 to 3 are text, 4 ends, 5 starts, 6 stands for no times, 7 to 12 are times.
SpeechFacts SpokenFacts() {
  return {.start = 5, .end = 4, .no_timestamps = 6, .max_initial_time = 2};
}

double SumAfter(std::optional<TimeRules> times, int64_t id) {
  const auto sum = std::make_shared<double>(0);
  SpokenRules rules(std::move(times), sum);
  std::vector<float> scores(13, 0.0f);
  EXPECT_TRUE(rules.Restrict(absl::MakeSpan(scores)).ok());
  EXPECT_TRUE(rules.Take(id).ok());
  return *sum;
}

TEST(SpokenRulesTest, LogprobsAreThoseOfTheScoresThatTheRulesLeave) {
  EXPECT_NEAR(SumAfter(std::nullopt, 8), -std::log(13), 1e-6);
  // A transcript begins with one of three times.
  EXPECT_NEAR(SumAfter(TimeRules(SpokenFacts()), 8), -std::log(3), 1e-6);
}

TEST(SpokenWindowTest, ThresholdsAreThoseOfWhisper) {
  const SpeechThresholds all;
  struct Case {
    double logprob, ratio, no_speech;
    bool is_doubtful, is_silent;
  };
  for (const Case& one : {Case{-0.5, 1, 0.1, false, false}, Case{-1.5, 1, 0.1, true, false},
                          Case{-0.5, 3, 0.1, true, false}, Case{-1.5, 3, 0.9, false, true},
                          Case{-0.5, 3, 0.9, true, false}, Case{-0.5, 1, 0.9, false, false}}) {
    const SpokenScores scores = {
        .logprob = one.logprob, .compression_ratio = one.ratio, .no_speech = one.no_speech};
    EXPECT_EQ(IsDoubtful(scores, all), one.is_doubtful) << one.logprob << " " << one.ratio;
    EXPECT_EQ(IsSilent(scores, all), one.is_silent) << one.logprob << " " << one.ratio;
  }
}

TEST(SpokenWindowTest, WhatRepeatsItselfIsPacked) {
  EXPECT_EQ(*CompressionRatio(""), 0);
  EXPECT_LT(*CompressionRatio("the sky is blue"), 1);
  std::string text;
  for (int i = 0; i < 50; ++i) text += "the sky ";
  EXPECT_GT(*CompressionRatio(text), 10);
}

}  // namespace
}  // namespace reprise
