#include "runtime/generate/step_plan.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

namespace reprise {
namespace {

// Sequences of keys, each after its first drawn token or at its prompt of `prompt` tokens.
class StepPlanTest : public testing::Test {
 protected:
  std::shared_ptr<KeyShare> Key(double weight) {
    auto key = std::make_shared<KeyShare>();
    key->use.weight = weight;
    use_.Enter(key->use);
    return key;
  }
  void Add(const std::shared_ptr<KeyShare>& key, int count, int64_t prompt = 0) {
    for (int i = 0; i < count; ++i) {
      auto sequence = std::make_unique<Sequence>();
      sequence->request = std::make_shared<SequenceRequest>();
      sequence->request->share = key;
      sequence->request->asked.ids.assign(prompt > 0 ? prompt : 1, 1);
      sequence->tokens.assign(prompt > 0 ? prompt : 2, 1);
      sequence->computed = prompt > 0 ? 0 : 1;
      running_.push_back(sequence.get());
      sequences_.push_back(std::move(sequence));
    }
  }
  // Returns the tokens of each key in `steps` steps, which end no sequence.
  std::map<const KeyShare*, int64_t> Tokens(const StepLimits& limits, int steps) {
    std::map<const KeyShare*, int64_t> tokens;
    for (int i = 0; i < steps; ++i) {
      const PlannedStep step = PlanStep(
          running_, limits, [](Sequence&, int64_t) { return true; },
          [](const Sequence&) { return false; }, use_);
      EXPECT_LE(step.tokens, limits.tokens);
      for (const StepItem& item : step.items) {
        tokens[item.sequence->request->share.get()] += item.count;
      }
    }
    return tokens;
  }

  SharedUse use_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::vector<Sequence*> running_;
};

TEST_F(StepPlanTest, KeysShareTheTokensOfStepsByWeightWhereAStepHasTooFewForAll) {
  const auto a = Key(1), b = Key(3), c = Key(1);
  Add(a, 60);  // these came first
  Add(b, 60);
  Add(c, 1);
  auto tokens = Tokens({.tokens = 16, .picks = 64}, 100);
  // The others share the tokens that the third cannot use, by their weights.
  EXPECT_EQ(tokens[c.get()], 100);
  EXPECT_NEAR(static_cast<double>(tokens[a.get()]), 1500 / 4.0, 8);
  EXPECT_NEAR(static_cast<double>(tokens[b.get()]), 1500 * 3 / 4.0, 8);
}

TEST_F(StepPlanTest, EachSequenceGoesOnWhereAStepHasRoomForAll) {
  const auto a = Key(1), b = Key(3);
  Add(a, 12);
  Add(b, 4);
  auto tokens = Tokens({.tokens = 16, .picks = 16}, 10);
  EXPECT_EQ(tokens[a.get()], 120);
  EXPECT_EQ(tokens[b.get()], 40);
}

TEST_F(StepPlanTest, TokensThatWereDrawnCountWherePromptsAreShared) {
  const auto a = Key(1), b = Key(1);
  Add(a, 8);
  Tokens({.tokens = 64, .stalling_tokens = 32}, 50);
  EXPECT_EQ(a->use.had, 400);
  running_.clear();
  Add(a, 1, 1000);
  Add(b, 1, 1000);
  const PlannedStep step = PlanStep(
      running_, {.tokens = 1, .picks = 1}, [](Sequence&, int64_t) { return true; },
      [](const Sequence&) { return false; }, use_);
  ASSERT_EQ(step.items.size(), 1u);
  EXPECT_EQ(step.items[0].sequence->request->share, b);
}

}  // namespace
}  // namespace reprise
