#include "runtime/generate/speculation.h"

#include <gmock/gmock.h>

#include "tests/runtime/generate/generator_fixture.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Ids = std::vector<int64_t>;

TEST(FindContinuationTest, WhatFollowedTheLongestMatchIsTheGuess) {
  EXPECT_THAT(FindContinuation(Ids{1, 2, 3, 4, 5, 9, 2, 3}, 3), ElementsAre(4, 5, 9));
  // Three tokens that match count for more than two that come later.
  EXPECT_THAT(FindContinuation(Ids{7, 1, 2, 8, 8, 1, 2, 5, 7, 1, 2}, 2), ElementsAre(8, 8));
  // The newest of equally long ones counts.
  EXPECT_THAT(FindContinuation(Ids{1, 2, 8, 4, 1, 2, 9, 5, 1, 2}, 1), ElementsAre(9));
}

TEST(FindContinuationTest, ALoopGoesOnAsItBegan) {
  EXPECT_THAT(FindContinuation(Ids{3, 5, 6, 5, 6}, 5), ElementsAre(5, 6, 5, 6, 5));
  EXPECT_THAT(FindContinuation(Ids{4, 4, 4}, 3), ElementsAre(4, 4, 4));
}

TEST(FindContinuationTest, WithoutAMatchThereIsNoGuess) {
  EXPECT_THAT(FindContinuation(Ids{1, 2, 3, 4}, 3), IsEmpty());
  EXPECT_THAT(FindContinuation(Ids{1}, 3), IsEmpty());
  EXPECT_THAT(FindContinuation(Ids{}, 3), IsEmpty());
  EXPECT_THAT(FindContinuation(Ids{1, 2, 1, 2}, 0), IsEmpty());
}

class SpeculationTest : public GeneratorTest {
 protected:
  // Returns the answers of several requests, of which some repeat themselves.
  std::vector<Told> Answers(bool speculate) {
    generator = nullptr;
    Make({.page_bytes = Pages(60), .max_running = 8, .speculate = speculate});
    std::vector<Told> told(10);
    for (size_t i = 0; i < told.size(); ++i) {
      std::vector<int64_t> ids = Prompt(6 + 5 * static_cast<int64_t>(i), static_cast<int64_t>(i));
      const std::vector<int64_t> once = ids;
      ids.insert(ids.end(), once.begin(), once.end());
      GenerationRequest request = Ask(ids, 90);
      if (i % 3 == 1) {
        request.sampling.temperature = 0.6f;
        request.sampling.seed = i;
        request.sampling.repetition_penalty = 1.1f;
      }
      if (i % 4 == 2) request.sampling.stop_ids = {static_cast<int64_t>(3 * i)};
      EXPECT_TRUE(Submit(std::move(request), told[i]).ok());
    }
    RunAll();
    return told;
  }
};

TEST_F(SpeculationTest, TokensAndScoresAreThoseOfStepsWithoutDrafts) {
  const std::vector<Told> plain = Answers(false);
  EXPECT_EQ(generator->Stats().drafts_right + generator->Stats().drafts_wrong, 0);
  const int64_t steps = generator->Stats().steps;
  const std::vector<Told> drafted = Answers(true);
  EXPECT_GT(generator->Stats().drafts_right, 0);
  EXPECT_LE(generator->Stats().steps, steps);
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(drafted[i].ids, plain[i].ids) << i;
    EXPECT_EQ(drafted[i].logprobs, plain[i].logprobs) << i;
    EXPECT_EQ(drafted[i].ending, plain[i].ending) << i;
    EXPECT_TRUE(drafted[i].last);
  }
  EXPECT_EQ(generator->Stats().pages_used, 0);
}

TEST_F(SpeculationTest, NoDraftGoesBeyondTheContextOrTheTokensThatAreWanted) {
  for (const int64_t most : {3, 1000}) {
    generator = nullptr;
    Make({.context = 64});
    Told told;
    ASSERT_TRUE(Submit(Ask({1, 2, 1, 2, 1, 2}, most), told).ok());
    RunAll();
    EXPECT_EQ(told.ids.size(), most == 3 ? 3u : 58u);
    EXPECT_EQ(told.ending, Ending::kLength);
  }
}

}  // namespace
}  // namespace reprise
