#include "runtime/generate/generator.h"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "runtime/generate/generate.h"
#include "tests/runtime/generate/generator_fixture.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;

TEST_F(GeneratorTest, HoweverManyComeAtOnceNoMoreWaitThanMay) {
  constexpr int64_t kMost = 8;
  Make({.max_waiting = kMost});
  std::vector<Told> told(400);
  std::atomic<int> accepted{0}, next{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&] {
      for (int one = next++; one < 400; one = next++) {
        const absl::Status status = Submit(Ask(Prompt(5, one), 2), told[one]);
        if (status.ok()) {
          ++accepted;
        } else {
          EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
          EXPECT_THAT(std::string(status.message()), HasSubstr("8 requests wait already, and 8"));
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(accepted, kMost);
  EXPECT_EQ(generator->Stats().waiting, kMost);
  RunAll();
  Told late;
  EXPECT_TRUE(Submit(Ask({1}, 1), late).ok());
  RunAll();
  EXPECT_TRUE(late.last);
}

TEST_F(GeneratorTest, ScoresAreTheSameToTheLastBitWhateverRunsBeside) {
  Make({});
  Told alone, beside;
  ASSERT_TRUE(Submit(Ask(Prompt(37, 1), 40), alone).ok());
  RunAll();
  generator = nullptr;
  Make({.max_running = 8});
  std::vector<Told> others(12);
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(Submit(Ask(Prompt(3 + 9 * i, i + 2), 30), others[i]).ok());
    if (i == 5) ASSERT_TRUE(Submit(Ask(Prompt(37, 1), 40), beside).ok());
  }
  RunAll();
  EXPECT_EQ(beside.ids, alone.ids);
  EXPECT_EQ(beside.logprobs, alone.logprobs);
}

TEST_F(GeneratorTest, APrefixThatWasComputedIsFoundOnceThereIsRoom) {
  Make({.page_bytes = Pages(6)});
  Told first, second;
  // The second one has room only when the first has ended, and finds its pages then.
  ASSERT_TRUE(Submit(Ask(Prompt(80, 1), 10), first).ok());
  std::vector<int64_t> ids = Prompt(80, 1);
  ids.push_back(5);
  ASSERT_TRUE(Submit(Ask(ids, 3), second).ok());
  RunAll();
  EXPECT_EQ(first.ids.size(), 10u);
  EXPECT_EQ(second.ids.size(), 3u);
  EXPECT_EQ(second.cached, 80);
  EXPECT_EQ(generator->Stats().pages_used, 0);
}

TEST_F(GeneratorTest, ScoresThatAreNoNumbersFailTheirOwnSequenceAlone) {
  Make({});
  Told alone, bad, good;
  ASSERT_TRUE(Submit(Ask(Prompt(20, 1), 8), alone).ok());
  RunAll();
  ASSERT_TRUE(Submit(Ask({1, kTinyPoison, 2}, 8), bad).ok());
  ASSERT_TRUE(Submit(Ask(Prompt(20, 1), 8), good).ok());
  RunAll();
  EXPECT_EQ(bad.status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(bad.status.message()), HasSubstr("scores are not numbers"));
  EXPECT_TRUE(good.status.ok());
  EXPECT_EQ(good.logprobs, alone.logprobs);
  EXPECT_EQ(generator->Stats().pages_used, 0);
}

TEST_F(GeneratorTest, RequestsThatLeaveNoTokenToDrawAreRefused) {
  Make({.eos_ids = {3}});
  Told told;
  const auto why = [&](SamplingOptions sampling) {
    GenerationRequest request = Ask(Prompt(4, 1), 8);
    request.sampling = std::move(sampling);
    const absl::Status status = Submit(std::move(request), told);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(why({.min_tokens = 2, .stop_ids = {5}, .allowed_ids = {3, 5}}),
              HasSubstr("each of the 2 allowed ids would end the answer before 'min_tokens' = 2"));
  SamplingOptions all = {.min_tokens = 1};
  for (int64_t id = 0; id < kTinyVocabulary; ++id) all.stop_ids.push_back(id);
  EXPECT_THAT(why(all), HasSubstr("each of the 40 ids of the vocabulary would end the answer"));
  EXPECT_THAT(why({.stop_ids = std::vector<int64_t>(2'000'000, 5), .n = 64}),
              HasSubstr("'stop_token_ids' has 2000000 ids, and the vocabulary 40"));
  // Without a least number of tokens the first one ends the answer.
  all.min_tokens = 0;
  GenerationRequest request = Ask(Prompt(4, 1), 8);
  request.sampling = all;
  ASSERT_TRUE(Submit(std::move(request), told).ok());
  RunAll();
  EXPECT_EQ(told.ids.size(), 1u);
  EXPECT_EQ(told.ending, Ending::kStop);
}

TEST_F(GeneratorTest, ASequenceThatIsSetBackTooOftenEndsWithBothNumbers) {
  Make({.page_bytes = Pages(8), .max_unread = 2});
  // It holds its pages and waits for its client.
  Told victim;
  GenerationRequest low = Ask(Prompt(40, 1), 60);
  low.priority = UINT64_MAX;
  low.counts_unread = true;
  ASSERT_TRUE(Submit(std::move(low), victim).ok());
  // Each of these goes first, and takes all pages in the end.
  std::vector<Told> others(4);
  for (int64_t i = 0; i < 4; ++i) {
    RunAll();
    GenerationRequest high = Ask(Prompt(40, 2 + i), 80);
    high.priority = 1;
    ASSERT_TRUE(Submit(std::move(high), others[i]).ok());
    while (!others[i].last && generator->Step()) {
    }
    EXPECT_EQ(others[i].ids.size(), 80u);
    victim.handle->Took(1);
  }
  RunAll();
  EXPECT_EQ(victim.status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(victim.status.message()),
              HasSubstr("sequence was preempted 4 times: 8 pages"));
  EXPECT_EQ(generator->Stats().pages_used, 0);
}

TEST_F(GeneratorTest, RequestsThatCanNeverBeServedAreRefusedWithBothNumbers) {
  Make({.page_bytes = Pages(4)});
  Told told;
  const auto why = [&](std::vector<int64_t> ids) {
    const absl::Status status = Submit(Ask(std::move(ids), 2), told);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(why(Prompt(256, 1)), HasSubstr("has 256 tokens, and the model's context of 256"));
  EXPECT_THAT(why(Prompt(64, 1)), HasSubstr("needs 5 pages, and there are 4"));
  EXPECT_THAT(why({1, kTinyVocabulary}), HasSubstr("value 40 at 1 is out of range [0, 39]"));
  EXPECT_THAT(why({}), HasSubstr("the prompt has no tokens"));
}

TEST_F(GeneratorTest, CancelledAndLateRequestsGiveTheirPagesBackAtTheNextStep) {
  Make({.max_running = 1});
  Told running, waiting, late;
  ASSERT_TRUE(Submit(Ask(Prompt(40, 1), 100), running).ok());
  ASSERT_TRUE(Submit(Ask(Prompt(40, 2), 100), waiting).ok());
  GenerationRequest past = Ask(Prompt(40, 3), 100);
  past.deadline_ns = 1;
  ASSERT_TRUE(Submit(std::move(past), late).ok());
  generator->Step();
  EXPECT_EQ(late.status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_GT(generator->Stats().pages_used, 0);
  running.handle->Cancel();
  waiting.handle->Cancel();
  EXPECT_FALSE(generator->Step());
  EXPECT_EQ(running.status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(waiting.status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(generator->Stats().pages_used, 0);
}

TEST_F(GeneratorTest, AClientThatDoesNotReadIsWaitedFor) {
  Make({.max_unread = 4});
  Told slow;
  GenerationRequest request = Ask(Prompt(4, 1), 20);
  request.counts_unread = true;
  ASSERT_TRUE(Submit(std::move(request), slow).ok());
  RunAll();
  EXPECT_EQ(slow.ids.size(), 4u);
  slow.handle->Took(3);
  RunAll();
  EXPECT_EQ(slow.ids.size(), 7u);
  EXPECT_FALSE(slow.last);
}

TEST_F(GeneratorTest, OneRequestIsAnsweredWholeWithoutAServer) {
  Make({});
  Told alone;
  ASSERT_TRUE(Submit(Ask(Prompt(12, 1), 9), alone).ok());
  RunAll();
  GenerationRequest request = Ask(Prompt(12, 1), 9);
  request.sampling.n = 2;
  const auto answers = Generate(*generator, std::move(request));
  ASSERT_TRUE(answers.ok()) << answers.status();
  ASSERT_EQ(answers->size(), 2u);
  for (const GeneratedAnswer& answer : *answers) {
    EXPECT_EQ(answer.finish, Ending::kLength);
    std::vector<int64_t> ids;
    for (const SampledToken& token : answer.tokens) ids.push_back(token.id);
    EXPECT_EQ(ids, alone.ids);
  }
  EXPECT_EQ(Generate(*generator, Ask({}, 1)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Generate(*generator, Ask({kTinyPoison}, 1)).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST_F(GeneratorTest, AWaitIsExplainedByTheTokensInFront) {
  Make({.max_running = 1});
  Told first, second, third;
  ASSERT_TRUE(Submit(Ask(Prompt(100, 1), 3), first).ok());
  ASSERT_TRUE(Submit(Ask(Prompt(50, 2), 3), second).ok());
  ASSERT_TRUE(Submit(Ask(Prompt(5, 3), 3), third).ok());
  RunAll();
  EXPECT_EQ(first.wait.prompts_before, 0);
  EXPECT_EQ(third.wait.prompts_before, 2);
  EXPECT_EQ(third.wait.tokens_before, 150);
  EXPECT_GT(third.wait.ns, first.wait.ns);
  const GenerationWait long_one = {.ns = 80'100'000, .prompts_before = 3, .tokens_before = 2000};
  EXPECT_EQ(long_one.Text(), "80.1 ms: 3 prompts of 2000 tokens before it");
  EXPECT_EQ(GenerationWait{.ns = 900'000}.Text(), "");
}

TEST_F(GeneratorTest, WhatRunsAndWaitsEndsWithTheReasonOfTheEnd) {
  Make({.max_running = 1});
  Told running, waiting, late;
  ASSERT_TRUE(Submit(Ask(Prompt(4, 1), 20), running).ok());
  ASSERT_TRUE(Submit(Ask(Prompt(4, 2), 20), waiting).ok());
  generator->Step();
  generator->Close(absl::UnavailableError("the model is unloaded"));
  for (const Told* told : {&running, &waiting}) {
    EXPECT_TRUE(told->last);
    EXPECT_EQ(told->status.code(), absl::StatusCode::kUnavailable);
  }
  EXPECT_EQ(Submit(Ask({1}, 1), late).code(), absl::StatusCode::kUnavailable);
}

// Steps compute each token after those before it. A model whose tokens see later ones of the same
// request answers several of them otherwise.
TEST_F(GeneratorTest, AModelWhoseTokensSeeLaterOnesIsNotPaged) {
  const std::shared_ptr<Model> model = LoadTiny(fixture_.engine, /*causal=*/false);
  ASSERT_NE(model, nullptr);
  const absl::Status refused = Generator::Create(fixture_.engine, model, {.context = 64}).status();
  EXPECT_TRUE(absl::IsUnimplemented(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              testing::HasSubstr("new tokens see those that come after them"));
}

}  // namespace
}  // namespace reprise
