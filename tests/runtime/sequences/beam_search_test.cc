#include "runtime/sequences/beam_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace reprise {
namespace {

using ::testing::ElementsAre;
using Early = BeamOptions::Early;

// Scores whose log-probabilities are these, up to the same number for all.
std::vector<float> Logs(const std::vector<double>& probabilities) {
  std::vector<float> scores;
  for (const double one : probabilities) scores.push_back(static_cast<float>(std::log(one)));
  return scores;
}

// Steps all beams: every beam has the same row. Ids 0, 1, 2 and the stop id 3.
void StepAll(BeamSearch& search, const std::vector<double>& probabilities) {
  const std::vector<float> scores = Logs(probabilities);
  for (int64_t beam = 0; beam < search.live(); ++beam) {
    const auto complete = search.Add(beam, scores);
    ASSERT_TRUE(complete.ok()) << complete.status();
    EXPECT_EQ(*complete, beam + 1 == search.live());
  }
  search.Advance();
}

std::vector<int64_t> IdsOf(const BeamSearch::Answer& answer) {
  std::vector<int64_t> ids;
  for (const BeamSearch::Token& token : answer.tokens) ids.push_back(token.id);
  return ids;
}

TEST(BeamSearchTest, TheLikeliestAnswerAsAWholeWinsOverTheLikeliestFirstToken) {
  BeamSearch search({.beams = 2}, {.stops = {3}, .max_tokens = 2});
  ASSERT_TRUE(search.Add(0, Logs({0.5, 0.4, 0.09, 0.01})).ok());
  const auto children = search.Advance();
  ASSERT_EQ(children.size(), 2);
  EXPECT_EQ(children[0].id, 0);
  EXPECT_EQ(children[1].id, 1);
  // Anything may follow id 0, and id 1 has one certain successor.
  ASSERT_TRUE(search.Add(0, Logs({0.3, 0.3, 0.3, 0.1})).ok());
  ASSERT_TRUE(search.Add(1, Logs({0.001, 0.001, 0.997, 0.001})).ok());
  EXPECT_TRUE(search.Advance().empty());
  EXPECT_EQ(search.live(), 0);
  const auto best = search.Best(2);
  ASSERT_EQ(best.size(), 2);
  EXPECT_THAT(IdsOf(best[0]), ElementsAre(1, 2));
  EXPECT_FALSE(best[0].stopped);
  EXPECT_NEAR(best[0].score, std::log(0.4 * 0.997) / 2, 1e-5);
}

TEST(BeamSearchTest, APenaltyOnLengthDecidesBetweenShortAndLong) {
  for (const auto& [penalty, tokens] : {std::pair{0.0f, size_t{1}}, std::pair{4.0f, size_t{4}}}) {
    BeamSearch search({.beams = 2, .length_penalty = penalty, .early_stopping = Early::kNever},
                      {.stops = {3}, .max_tokens = 4});
    while (search.live() > 0) StepAll(search, {0.4, 0.2, 0.05, 0.35});
    EXPECT_EQ(search.Best(1)[0].tokens.size(), tokens) << penalty;
  }
}

TEST(BeamSearchTest, EarlyStoppingEndsWithAsManyAnswersAsBeams) {
  BeamSearch search({.beams = 2, .length_penalty = 4, .early_stopping = Early::kFirst},
                    {.stops = {3}, .max_tokens = 50});
  while (search.live() > 0) StepAll(search, {0.4, 0.2, 0.05, 0.35});
  EXPECT_LT(search.tokens(), 5);
  for (const BeamSearch::Answer& answer : search.Best(2)) EXPECT_TRUE(answer.stopped);
}

TEST(BeamSearchTest, AnAnswerDoesNotEndBeforeItsLeastNumberOfTokens) {
  BeamSearch search({.beams = 2, .early_stopping = Early::kFirst},
                    {.stops = {3}, .min_tokens = 3, .max_tokens = 8});
  while (search.live() > 0) StepAll(search, {0.1, 0.1, 0.1, 0.7});
  EXPECT_GT(search.Best(1)[0].tokens.size(), 3);
}

TEST(BeamSearchTest, ForcedAndForbiddenIdsHold) {
  BeamSearch search({.beams = 2}, {.stops = {3}, .max_tokens = 2});
  ASSERT_TRUE(search.Add(0, Logs({0.7, 0.1, 0.1, 0.1}), {}, 2).ok());
  const auto children = search.Advance();
  ASSERT_EQ(children.size(), 1);
  EXPECT_EQ(children[0].id, 2);
  const std::vector<int64_t> never = {0};
  ASSERT_TRUE(search.Add(0, Logs({0.7, 0.2, 0.1, 1e-9}), never).ok());
  search.Advance();
  EXPECT_THAT(IdsOf(search.Best(1)[0]), ElementsAre(2, 1));
}

TEST(BeamSearchTest, ScoresThatAreNoNumbersAreDataLoss) {
  BeamSearch search({.beams = 2}, {.stops = {}, .max_tokens = 2});
  const std::vector<float> scores = {0, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_EQ(search.Add(0, scores).status().code(), absl::StatusCode::kDataLoss);
}

TEST(BeamSearchTest, OptionsOutOfRangeAreNamed) {
  EXPECT_TRUE((BeamOptions{.beams = 4}.Check(4).ok()));
  EXPECT_THAT(std::string((BeamOptions{.beams = 4}.Check(5).message())),
              testing::HasSubstr("'n' = 5 is more than 'num_beams' = 4"));
  EXPECT_THAT(std::string((BeamOptions{.beams = 0}.Check(1).message())),
              testing::HasSubstr("'num_beams' = 0"));
}

}  // namespace
}  // namespace reprise
