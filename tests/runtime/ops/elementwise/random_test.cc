#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

struct Moments {
  double mean = 0, variance = 0, low = 0, high = 0;
};
Moments MomentsOf(const std::vector<double>& numbers) {
  Moments m;
  const double count = static_cast<double>(numbers.size());
  for (const double x : numbers) m.mean += x / count;
  for (const double x : numbers) m.variance += (x - m.mean) * (x - m.mean) / count;
  m.low = *std::min_element(numbers.begin(), numbers.end());
  m.high = *std::max_element(numbers.begin(), numbers.end());
  return m;
}

TEST(RandomTest, NormalNumbersHaveTheMeanAndScaleThatTheNodeSays) {
  const auto numbers = Numbers(
      RunOp("RandomNormal", {}, {{"shape", Ints{100, 1000}}, {"mean", 3.0f}, {"scale", 2.0f}}));
  ASSERT_EQ(numbers.size(), 100000u);
  const Moments m = MomentsOf(numbers);
  EXPECT_NEAR(m.mean, 3, 0.05);
  EXPECT_NEAR(m.variance, 4, 0.15);
  EXPECT_LT(m.low, 3 - 2 * 3);
  EXPECT_GT(m.high, 3 + 2 * 3);
  // One does not say anything about the next.
  double together = 0;
  for (size_t i = 1; i < numbers.size(); ++i) {
    together += (numbers[i] - m.mean) * (numbers[i - 1] - m.mean) / 1e5;
  }
  EXPECT_NEAR(together / m.variance, 0, 0.02);
}

TEST(RandomTest, UniformNumbersFillTheirRange) {
  const Tensor x = F32({200, 500}, std::vector<float>(100000));
  const Moments m =
      MomentsOf(Numbers(RunOp("RandomUniformLike", {x}, {{"low", -1.0f}, {"high", 3.0f}})));
  EXPECT_NEAR(m.mean, 1, 0.03);
  EXPECT_NEAR(m.variance, 16.0 / 12, 0.03);
  EXPECT_GE(m.low, -1);
  EXPECT_LT(m.low, -0.99);
  EXPECT_LT(m.high, 3);
  EXPECT_GT(m.high, 2.99);
}

TEST(RandomTest, RunsDifferUnlessASeedIsGiven) {
  const Tensor x = F32({50}, std::vector<float>(50));
  const auto run = [&](Attributes attributes) {
    return Numbers(RunOp("RandomNormalLike", {x}, std::move(attributes)));
  };
  EXPECT_NE(run({}), run({}));
  EXPECT_EQ(run({{"seed", 7.0f}}), run({{"seed", 7.0f}}));
  EXPECT_NE(run({{"seed", 7.0f}}), run({{"seed", 8.0f}}));
}

TEST(RandomTest, BernoulliHitsAsOftenAsItsOperandSays) {
  std::vector<float> chances(90000);
  for (size_t i = 0; i < chances.size(); ++i) chances[i] = static_cast<float>(i % 3) / 2;
  const auto result = RunOp("Bernoulli", {F32({90000}, chances)}, {{"dtype", int64_t{9}}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ((*result)[0].dtype(), DType::kBool);
  const auto hits = Numbers(result);
  double half = 0;
  for (size_t i = 0; i < hits.size(); ++i) {
    if (i % 3 == 1) half += hits[i] / 30000;
    if (i % 3 != 1) {
      ASSERT_EQ(hits[i], i % 3 == 0 ? 0 : 1);
    }
  }
  EXPECT_NEAR(half, 0.5, 0.02);
}

TEST(RandomTest, IntegersAreRefusedByName) {
  const auto result = RunOp("RandomUniform", {}, {{"shape", Ints{2}}, {"dtype", int64_t{7}}});
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("i64"));
}

}  // namespace
}  // namespace reprise
