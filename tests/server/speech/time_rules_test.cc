#include "server/speech/time_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace reprise {
namespace {

using testing::ElementsAre;

// Ids 0 to 3 are text, 4 ends, 5 starts, 6 stands for no times, 7 to 12 are times.
SpeechFacts Facts() { return {.start = 5, .end = 4, .no_timestamps = 6, .max_initial_time = 2}; }

// Returns the ids that may follow `made`, by scores that make every text likelier than all times
// together.
std::vector<int64_t> Left(const std::vector<int64_t>& made, float text_score = 10) {
  TimeRules rules(Facts());
  for (const int64_t id : made) EXPECT_FALSE(*rules.Take(id));
  std::vector<float> scores(13, 0.0f);
  std::fill(scores.begin(), scores.begin() + 7, text_score);
  EXPECT_TRUE(rules.Restrict(absl::MakeSpan(scores)).ok());
  std::vector<int64_t> left;
  for (int64_t id = 0; id < 13; ++id) {
    if (std::isfinite(scores[id])) left.push_back(id);
  }
  return left;
}

TEST(TimeRulesTest, ATranscriptBeginsWithATimeThatIsNotTooLate) {
  EXPECT_THAT(Left({}), ElementsAre(7, 8, 9));
}

TEST(TimeRulesTest, TextFollowsTheFirstTimeAndAPairOfTimes) {
  EXPECT_THAT(Left({8}), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(Left({8, 1, 9, 9}), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(TimeRulesTest, TheSecondTimeOfAPairOrTheEndFollowsTheFirst) {
  EXPECT_THAT(Left({8, 1, 10}), ElementsAre(4, 5, 10, 11, 12));
}

TEST(TimeRulesTest, TimesDoNotGoBack) {
  EXPECT_THAT(Left({8, 1, 10, 10, 2}), ElementsAre(0, 1, 2, 3, 4, 5, 11, 12));
}

TEST(TimeRulesTest, ATimeFollowsWhereAllTogetherAreLikelierThanAnyText) {
  // Five times of score 0 weigh log(5) = 1.6 together.
  EXPECT_THAT(Left({7, 1}, 1.5), ElementsAre(8, 9, 10, 11, 12));
  EXPECT_THAT(Left({7, 1}, 1.7), ElementsAre(0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12));
}

TEST(TimeRulesTest, FewerScoresThanIdsAreNoTrouble) {
  TimeRules rules(Facts());
  std::vector<float> scores(3, 1.0f);
  EXPECT_TRUE(rules.Restrict(absl::MakeSpan(scores)).ok());
}

}  // namespace
}  // namespace reprise
