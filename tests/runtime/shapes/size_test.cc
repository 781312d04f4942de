#include "runtime/shapes/size.h"

#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/shapes/region.h"
#include "runtime/shapes/term.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Guards(const SizeTable& table) {
  std::vector<std::string> texts;
  for (const Guard& guard : table.guards()) texts.push_back(GuardText(guard));
  return texts;
}

TEST(SizeTest, ConstantsComputeAsNumbersDo) {
  const Size a = 7, b = 2;
  EXPECT_TRUE((a / b).Same(3));
  EXPECT_TRUE((a % b).Same(1));
  EXPECT_TRUE((Size(-7) / b).Same(-3));
  EXPECT_TRUE(a > b);
  EXPECT_TRUE(FloorDivide(Size(-7), b).Same(-4));
}

TEST(SizeTest, EqualPolynomialsAreOneTerm) {
  SizeTable table;
  const Size b = table.Symbol("b", 3), s = table.Symbol("s", 7);
  EXPECT_TRUE(((b + s) * (b - s)).Same(b * b - s * s));
  EXPECT_TRUE((b * s * 4 / 4).Same(b * s));
  EXPECT_TRUE((s - s).Same(0));
  EXPECT_EQ(SizeText(2 * s + b * s - 3), "b*s + 2*s - 3");
  EXPECT_THAT(Guards(table), IsEmpty());
}

TEST(SizeTest, WhatDividesIsTakenOutOfAQuotient) {
  SizeTable table;
  const Size b = table.Symbol("b", 3, 1), s = table.Symbol("s", 7, 1);
  EXPECT_TRUE(((b * s * 12 + s * 24) / (b + 2)).Same(s * 12));
  EXPECT_TRUE(((b * s * 3) / (s * 3)).Same(b));
  EXPECT_TRUE(((b * s * 3 + b + 1) / s).Same(b * 3 + (b + 1) / s));
  EXPECT_TRUE((((s + 1) / 2 + 1) / 2).Same((s + 3) / 4));
  EXPECT_TRUE(((4 * s + 2) / 8).Same((2 * s + 1) / 4));
  EXPECT_TRUE((s - s / 32 * 32).Same(s % 32));
  EXPECT_THAT(Guards(table), IsEmpty());
}

TEST(SizeTest, AnExtremeIsChosenWhereBoundsDecideIt) {
  SizeTable table;
  const Size s = table.Symbol("s", 7), t = table.Symbol("t", 9);
  EXPECT_TRUE(Largest(s, 0).Same(s));
  EXPECT_TRUE(Least(s + 1, s).Same(s));
  EXPECT_EQ(SizeText(Largest(t, s)), "max(s, t)");
  EXPECT_TRUE(Largest(t, s).Same(Largest(s, t)));
  EXPECT_TRUE(Largest(s, t) >= s);
  EXPECT_THAT(Guards(table), IsEmpty());
}

TEST(SizeTest, AComparisonThatHintsDecideIsAGuard) {
  SizeTable table;
  const Size s = table.Symbol("s", 7);
  table.set_origin(5);
  EXPECT_FALSE(s == 1);
  EXPECT_THAT(Guards(table), ElementsAre("s >= 2"));
  EXPECT_EQ(table.guards()[0].origin, 5);
  // Its consequences are no guards of their own.
  EXPECT_TRUE(s > 0);
  EXPECT_FALSE(s * 3 == 3);
  EXPECT_TRUE(s <= 100);
  EXPECT_TRUE((s + 1) / 2 < 60);
  EXPECT_THAT(Guards(table), ElementsAre("s >= 2", "s <= 100"));
}

TEST(SizeTest, FormsOfSeveralAxesAreRememberedAsWell) {
  SizeTable table;
  const Size s = table.Symbol("s", 7), t = table.Symbol("t", 9);
  EXPECT_FALSE(s == t);
  EXPECT_FALSE(t == s);
  EXPECT_TRUE(s < t + 2);
  EXPECT_TRUE(2 * s < 2 * t + 4);
  EXPECT_THAT(Guards(table), ElementsAre("s - t != 0", "s - t <= 1"));
}

TEST(SizeTest, ARemainderIsAPredicateOfItsOwn) {
  SizeTable table;
  const Size s = table.Symbol("s", 64);
  EXPECT_TRUE(s % 32 == 0);
  EXPECT_FALSE(s % 32 < 0);
  EXPECT_THAT(Guards(table), ElementsAre("s - 32*floor(s / 32) == 0"));
  EXPECT_TRUE(SizeEvaluator(table, {{"s", 96}}).InRegion());
  EXPECT_FALSE(SizeEvaluator(table, {{"s", 97}}).InRegion());
}

TEST(SizeTest, PinningLeavesOneSize) {
  SizeTable table;
  const Size s = table.Symbol("s", 7);
  EXPECT_EQ((2 * s).Pinned(), 14);
  EXPECT_TRUE(SizeEvaluator(table, {{"s", 7}}).InRegion());
  EXPECT_FALSE(SizeEvaluator(table, {{"s", 8}}).InRegion());
}

TEST(SizeTest, BroadcastingNextToAOneAsksNothing) {
  SizeTable table;
  const Size b = table.Symbol("b", 3), s = table.Symbol("s", 7);
  const auto shape = BroadcastShapes(SizeList{b, 1, s}, SizeList{1, 1});
  ASSERT_TRUE(shape.ok());
  EXPECT_EQ(SizesText(*shape), "[b, 1, s]");
  EXPECT_THAT(Guards(table), IsEmpty());
  EXPECT_FALSE(BroadcastShapes(SizeList{s}, SizeList{5}).ok());
}

TEST(SizeTest, AnOverflowIsNoNumber) {
  SizeTable table;
  const Size s = table.Symbol("s", 7);
  SizeEvaluator large(table, {{"s", int64_t{1} << 40}});
  EXPECT_EQ(large.At(s * s), std::nullopt);
  EXPECT_EQ(large.At(s + 1), (int64_t{1} << 40) + 1);
}

TEST(SizeTest, IndicesAreReplacedWithinTables) {
  SizeTable table;
  const Size s = table.Symbol("s", 7), i = table.Index(0), j = table.Index(1);
  const Size above = (i * 2 + j) / s;
  EXPECT_EQ(SizeEvaluator(table, {{"s", 4}}).At(above, {3, 2}), 2);
  EXPECT_TRUE(table.Substitute(above, {s, 0}).Same(2));
}

// Random expressions, computed in two ways: as numbers, and as terms at other sizes. Where every
// comparison that was made comes out as it did, the two agree.
class Draws {
 public:
  explicit Draws(unsigned seed) : state_(seed) {}
  int64_t Below(int64_t end) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((state_ >> 33) % static_cast<uint64_t>(end));
  }

 private:
  uint64_t state_;
};

template <typename Number>
Number Expression(Draws draws, const std::vector<Number>& leaves, std::vector<bool>* decided) {
  std::vector<Number> made = leaves;
  const auto pick = [&] { return made[static_cast<size_t>(draws.Below(std::ssize(made)))]; };
  for (int step = 0; step < 12; ++step) {
    const Number a = pick(), b = pick();
    switch (draws.Below(8)) {
      case 0:
        made.push_back(a + b);
        break;
      case 1:
        made.push_back(a - b);
        break;
      case 2:
        made.push_back(a * Number(draws.Below(5) - 2));
        break;
      case 3:
        made.push_back(FloorDivide(a, Number(1 + draws.Below(6))));
        break;
      case 4:
        made.push_back(a % Number(1 + draws.Below(6)));
        break;
      case 5:
        if constexpr (std::is_same_v<Number, Size>) {
          made.push_back(draws.Below(2) == 0 ? Least(a, b) : Largest(a, b));
        } else {
          made.push_back(draws.Below(2) == 0 ? std::min(a, b) : std::max(a, b));
        }
        break;
      case 6: {
        const bool less = a < b;
        decided->push_back(less);
        made.push_back(less ? a : b + Number(1));
        break;
      }
      default: {
        const bool equal = a == b;
        decided->push_back(equal);
        made.push_back(equal ? a : b);
        break;
      }
    }
  }
  Number sum = 0;
  for (const Number& number : made) sum = sum + number;
  return sum;
}

TEST(SizeTest, RandomExpressionsAgreeWithNumbersThroughoutTheirRegion) {
  int within = 0;
  for (unsigned seed = 1; seed <= 3000; ++seed) {
    Draws sizes(seed * 7919);
    SizeTable table;
    const int64_t hints[] = {sizes.Below(12), 1 + sizes.Below(40)};
    std::vector<bool> decided;
    const Size sum = Expression<Size>(
        Draws(seed), {table.Symbol("s", hints[0]), table.Symbol("t", hints[1], 1), 1, 5}, &decided);
    for (int trial = 0; trial < 20; ++trial) {
      const int64_t s = trial == 0 ? hints[0] : std::max<int64_t>(0, hints[0] + sizes.Below(9) - 4);
      const int64_t t = trial == 0 ? hints[1] : std::max<int64_t>(1, hints[1] + sizes.Below(9) - 4);
      SizeEvaluator evaluator(table, {{"s", s}, {"t", t}});
      std::vector<bool> there;
      const int64_t expected = Expression<int64_t>(Draws(seed), {s, t, 1, 5}, &there);
      if (!evaluator.InRegion()) {
        ASSERT_NE(trial, 0) << "seed " << seed;
        continue;
      }
      ++within;
      ASSERT_EQ(evaluator.At(sum), expected) << "seed " << seed << ": " << SizeText(sum);
      ASSERT_EQ(there, decided) << "seed " << seed;
    }
  }
  EXPECT_GT(within, 10000);
}

}  // namespace
}  // namespace reprise
