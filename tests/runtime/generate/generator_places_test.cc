// Which requests are served: clients that do not read, keys with more than their share, priorities.
#include <gmock/gmock.h>

#include "tests/runtime/generate/generator_fixture.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;

class GeneratorPlacesTest : public GeneratorTest {
 protected:
  static GenerationRequest AskFor(std::string key, std::vector<int64_t> ids, int64_t max_tokens,
                                  double weight = 1) {
    GenerationRequest request = Ask(std::move(ids), max_tokens);
    request.key = std::move(key);
    request.weight = weight;
    return request;
  }
  static GenerationRequest Unread(std::vector<int64_t> ids, int64_t max_tokens) {
    GenerationRequest request = Ask(std::move(ids), max_tokens);
    request.counts_unread = true;
    return request;
  }
  // Steps until `told` has a token; how many that took.
  int StepsUntilToken(const Told& told, int most = 2000) {
    int steps = 0;
    while (told.ids.empty() && !told.last && steps < most && generator->Step()) ++steps;
    return steps;
  }
};

TEST_F(GeneratorPlacesTest, ClientsThatDoNotReadGiveTheirPlacesToOthers) {
  Make({.max_running = 4, .max_unread = 4});
  std::vector<Told> stalled(8);
  for (int64_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(Submit(Unread(Prompt(5, i), 200), stalled[i]).ok());
  }
  RunAll();
  EXPECT_EQ(generator->Stats().stalled, 8);
  EXPECT_EQ(generator->Stats().running, 0);
  Told other;
  ASSERT_TRUE(Submit(Ask(Prompt(9, 3), 10), other).ok());
  RunAll();
  EXPECT_EQ(other.ids.size(), 10u);
  // One that reads three goes on by three, and its tokens equal those that a client that reads all
  // gets.
  Told whole;
  ASSERT_TRUE(Submit(Ask(Prompt(5, 2), 12), whole).ok());
  stalled[2].handle->Took(3);
  RunAll();
  EXPECT_EQ(stalled[2].ids.size(), 7u);
  EXPECT_EQ(stalled[2].ids, std::vector<int64_t>(whole.ids.begin(), whole.ids.begin() + 7));
  for (Told& one : stalled) one.handle->Cancel();
  RunAll();
  EXPECT_EQ(generator->Stats().stalled, 0);
  EXPECT_EQ(generator->Stats().pages_used, 0);
}

TEST_F(GeneratorPlacesTest, PagesOfWhoeverStallsAreTakenBeforeThoseOfOthers) {
  Make({.page_bytes = Pages(12), .max_running = 4, .max_unread = 2});
  std::vector<Told> stalled(3);
  for (int64_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(Submit(Unread(Prompt(60, i), 100), stalled[i]).ok());
  }
  RunAll();
  Told other;
  ASSERT_TRUE(Submit(Ask(Prompt(100, 7), 40), other).ok());
  RunAll();
  EXPECT_EQ(other.ids.size(), 40u);
  Told whole;
  ASSERT_TRUE(Submit(Ask(Prompt(60, 1), 4), whole).ok());
  RunAll();
  // Computed again, to the same bits.
  stalled[1].handle->Took(2);
  RunAll();
  EXPECT_EQ(stalled[1].ids, whole.ids);
  EXPECT_EQ(stalled[1].logprobs, whole.logprobs);
}

TEST_F(GeneratorPlacesTest, TheOldestOfTooManyThatStallEnds) {
  Make({.max_running = 4, .max_waiting = 3, .max_unread = 1});
  std::vector<Told> stalled(5);
  for (int64_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(Submit(Unread(Prompt(5, i), 20), stalled[i]).ok());
    RunAll();
  }
  EXPECT_EQ(generator->Stats().stalled, 3);
  EXPECT_EQ(stalled[0].status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(stalled[0].status.message()), HasSubstr("does not read its events"));
  EXPECT_TRUE(stalled[4].status.ok());
}

TEST_F(GeneratorPlacesTest, AnotherKeyIsGivenAPlaceAtOnce) {
  Make({.max_running = 4});
  // A drawn poison would end the answer early.
  const auto long_answer = [](GenerationRequest request) {
    request.sampling.logit_bias = {{kTinyPoison, -100.0f}};
    return request;
  };
  std::vector<Told> many(20);
  for (int64_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(Submit(long_answer(AskFor("many", Prompt(8, i), 150)), many[i]).ok());
  }
  for (int i = 0; i < 10; ++i) generator->Step();
  Told one;
  ASSERT_TRUE(Submit(AskFor("one", Prompt(8, 50), 3), one).ok());
  EXPECT_LE(StepsUntilToken(one), 2);
  RunAll();
  // Sequences that gave way went on, to the same bits.
  for (int64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(many[i].ids.size(), 150u);
    Told alone;
    ASSERT_TRUE(Submit(long_answer(Ask(Prompt(8, i), 150)), alone).ok());
    RunAll();
    EXPECT_EQ(many[i].logprobs, alone.logprobs) << i;
  }
}

TEST_F(GeneratorPlacesTest, PlacesAreSharedByWeights) {
  Make({.max_running = 8});
  std::vector<Told> light(30), heavy(30);
  for (int64_t i = 0; i < 30; ++i) {
    ASSERT_TRUE(Submit(AskFor("light", Prompt(4, i), 40), light[i]).ok());
  }
  for (int i = 0; i < 3; ++i) generator->Step();
  for (int64_t i = 0; i < 30; ++i) {
    ASSERT_TRUE(Submit(AskFor("heavy", Prompt(4, 40 + i), 40, 3), heavy[i]).ok());
  }
  for (int i = 0; i < 80; ++i) generator->Step();
  const auto tokens = [](const std::vector<Told>& all) {
    size_t sum = 0;
    for (const Told& told : all) sum += told.ids.size();
    return static_cast<double>(sum);
  };
  const double share = tokens(heavy) / (tokens(heavy) + tokens(light));
  EXPECT_NEAR(share, 0.75, 0.08);
}

TEST_F(GeneratorPlacesTest, ALongPromptOfAnotherKeyIsNotHeldUpByMany) {
  Make({.max_running = 32, .max_stall_ns = int64_t{1} << 40});
  std::vector<Told> many(31);
  for (int64_t i = 0; i < 31; ++i) {
    ASSERT_TRUE(Submit(AskFor("many", Prompt(200, i), 2), many[i]).ok());
  }
  generator->Step();
  Told one;
  ASSERT_TRUE(Submit(AskFor("one", Prompt(200, 77), 1), one).ok());
  // Steps of 64 tokens, half of them its own: 200 tokens take 7 of them.
  EXPECT_LE(StepsUntilToken(one), 8);
}

TEST_F(GeneratorPlacesTest, PagesGoToAKeyThatHasLess) {
  Make({.page_bytes = Pages(16), .max_running = 8});
  std::vector<Told> many(6);
  for (int64_t i = 0; i < 6; ++i) {
    ASSERT_TRUE(Submit(AskFor("many", Prompt(40, i), 60), many[i]).ok());
  }
  for (int i = 0; i < 8; ++i) generator->Step();
  Told one;
  ASSERT_TRUE(Submit(AskFor("one", Prompt(100, 50), 3), one).ok());
  EXPECT_LE(StepsUntilToken(one), 6);
  RunAll();
  for (const Told& told : many) EXPECT_EQ(told.ids.size(), 60u) << told.status;
}

TEST_F(GeneratorPlacesTest, EachKeyMayHaveAsManyThatWait) {
  Make({.max_waiting = 5});
  std::vector<Told> told(12);
  for (int64_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(Submit(AskFor("many", Prompt(4, i), 2), told[i]).ok());
  }
  EXPECT_EQ(Submit(AskFor("many", Prompt(4, 5), 2), told[5]).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Submit(AskFor("one", Prompt(4, 6), 2), told[6]).ok());
}

TEST_F(GeneratorPlacesTest, PrefixesOfOtherKeysAreNotFound) {
  Make({});
  const auto ask = [&](uint64_t key, uint64_t salt) {
    GenerationRequest request = Ask(Prompt(50, 1), 2);
    request.owner = {.key = key, .salt = salt};
    Told told;
    EXPECT_TRUE(Submit(std::move(request), told).ok());
    RunAll();
    return told.cached;
  };
  EXPECT_EQ(ask(1, 0), 0);
  EXPECT_EQ(ask(2, 0), 0);
  EXPECT_EQ(ask(1, 7), 0);
  EXPECT_EQ(ask(1, 0), 48);
  EXPECT_EQ(ask(2, 0), 48);
  EXPECT_EQ(ask(0, 0), 0);
}

}  // namespace
}  // namespace reprise
