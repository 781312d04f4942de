#include "runtime/ops/classical/forest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/ops/classical/class_scores.h"
#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ops::ForestShape;
using ops::ScoreRule;
using ops::ScoreRules;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

Tensor Sums(Shape shape, const std::vector<double>& values) {
  return Tensor::FromVector(DType::kFloat64, std::move(shape), values);
}

// Scores and labels of one row.
struct Answer {
  std::vector<double> scores;
  int64_t label = -1;
};
Answer Score(const ScoreRules& rules, const Tensor& sums) {
  const auto results = RunOp(ClassScoresOp::kName, {sums}, rules.ToAttributes(), 2);
  Answer answer = {Numbers(results, 0)};
  if (results.ok()) answer.label = (*results)[1].span<int64_t>()[0];
  return answer;
}

TEST(TreeEnsembleTest, RowsOfTooFewColumnsAreRefusedByName) {
  ForestShape shape = {.features = 3, .trees = 1, .nodes = 1};
  const ops::ForestLayout layout(shape, false);
  const Tensor bytes = U8({layout.bytes}, std::vector<uint8_t>(layout.bytes));
  const auto result =
      RunOp(TreeEnsembleOp::kName, {F32({1, 2}, {1, 2}), bytes}, shape.ToAttributes());
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("column 2"));
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("2 columns"));
}

TEST(TreeEnsembleTest, AttributesComeBackAsTheyWere) {
  const ForestShape shape = {.targets = 3,
                             .features = 7,
                             .mirrored = true,
                             .trees = 5,
                             .chunks = 2,
                             .nodes = 77,
                             .leaves = 40,
                             .entries = 41,
                             .kind = ops::LeafKind::kSparse,
                             .sum = ops::LeafSum::kMax,
                             .complete = false,
                             .feature_bits = 12,
                             .deepest = 9};
  EXPECT_EQ(ForestShape::From(shape.ToAttributes()).ToAttributes(), shape.ToAttributes());
  EXPECT_EQ(shape.columns(), 15);
}

TEST(ClassScoresTest, ChunksAreAddedAndTheLargestOfSeveralClassesIsTheLabel) {
  const ScoreRules rules = {.rule = ScoreRule::kLargest, .base = {}, .labels = {4, 5, 6}};
  const Answer answer = Score(rules, Sums({1, 2, 3}, {1, 2, 3, 0.5, 2, 0.5}));
  EXPECT_THAT(answer.scores, ElementsAre(1.5, 4, 3.5));
  EXPECT_EQ(answer.label, 5);
}

TEST(ClassScoresTest, OfEqualScoresTheFirstClassWins) {
  const ScoreRules rules = {.rule = ScoreRule::kLargest, .base = {}, .labels = {4, 5, 6}};
  EXPECT_EQ(Score(rules, Sums({1, 1, 3}, {1, 2, 2})).label, 5);
}

TEST(ClassScoresTest, AClassThatNothingWasGivenToIsZeroAndNoLabel) {
  const ScoreRules rules = {.rule = ScoreRule::kLargest, .base = {}, .labels = {4, 5, 6}};
  const Answer answer = Score(rules, Sums({1, 1, 3}, {-0.5, kNone, -1}));
  EXPECT_THAT(answer.scores, ElementsAre(-0.5, 0, -1));
  EXPECT_EQ(answer.label, 4);
}

TEST(ClassScoresTest, TwoClassesOfProbabilitiesSplitAtAHalf) {
  const ScoreRules rules = {.rule = ScoreRule::kTwoTrees,
                            .base = {},
                            .labels = {7, 9},
                            .one_class = true,
                            .positive = true};
  const Answer low = Score(rules, Sums({1, 1, 2}, {0.25, kNone}));
  EXPECT_THAT(low.scores, ElementsAre(0.75, 0.25));
  EXPECT_EQ(low.label, 7);
  EXPECT_EQ(Score(rules, Sums({1, 1, 2}, {0.75, kNone})).label, 9);
  EXPECT_EQ(Score(rules, Sums({1, 1, 2}, {0.5, kNone})).label, 7);
}

TEST(ClassScoresTest, TwoClassesOfAnyScoresSplitAtZero) {
  ScoreRules rules = {.rule = ScoreRule::kTwoTrees,
                      .post = ops::PostTransform::kLogistic,
                      .base = {0.5},
                      .labels = {0, 1},
                      .one_class = true};
  const Answer answer = Score(rules, Sums({1, 1, 2}, {-0.25, kNone}));
  EXPECT_THAT(answer.scores, ElementsAre(DoubleNear(1 / (1 + std::exp(0.25)), 1e-6),
                                         DoubleNear(1 / (1 + std::exp(-0.25)), 1e-6)));
  EXPECT_EQ(answer.label, 1);
  rules.post = ops::PostTransform::kNone;
  EXPECT_THAT(Score(rules, Sums({1, 1, 2}, {-0.75, kNone})).scores, ElementsAre(0.25, -0.25));
}

TEST(ClassScoresTest, OneLineIsTheScoreOfTheSecondClass) {
  const ScoreRules rules = {.rule = ScoreRule::kOneLine,
                            .post = ops::PostTransform::kLogistic,
                            .base = {},
                            .labels = {3, 8}};
  const auto results = RunOp(ClassScoresOp::kName, {F32({2, 1}, {2, -1})}, rules.ToAttributes(), 2);
  EXPECT_NEAR(Numbers(results)[1], 0.880797, 1e-6);
  EXPECT_NEAR(Numbers(results)[2], 0.731059, 1e-6);
  EXPECT_THAT(Numbers(results, 1), ElementsAre(8, 3));
}

TEST(ClassScoresTest, AveragesAreDividedBeforeTheBaseIsAdded) {
  const ScoreRules rules = {.divisor = 4, .base = {1, 10}};
  const auto results = RunOp(ClassScoresOp::kName, {Sums({1, 1, 2}, {2, 6})}, rules.ToAttributes());
  EXPECT_THAT(Numbers(results), ElementsAre(1.5, 11.5));
}

// onnxruntime does this; a single target always has its base.
TEST(ClassScoresTest, OfSeveralTargetsOneThatNothingWasGivenToHasNoBase) {
  for (const ops::LeafSum sum : {ops::LeafSum::kSum, ops::LeafSum::kMin, ops::LeafSum::kMax}) {
    const ScoreRules two = {.sum = sum, .base = {1, 10}};
    EXPECT_THAT(Numbers(RunOp(ClassScoresOp::kName, {Sums({2, 1, 2}, {2, kNone, kNone, 3})},
                              two.ToAttributes())),
                ElementsAre(3, 0, 0, 13));
    const ScoreRules one = {.sum = sum, .base = {10}};
    EXPECT_THAT(
        Numbers(RunOp(ClassScoresOp::kName, {Sums({1, 1, 1}, {kNone})}, one.ToAttributes())),
        ElementsAre(10));
  }
}

TEST(ClassScoresTest, TheLeastOfChunksIsTheLeastOfAll) {
  const ScoreRules rules = {.sum = ops::LeafSum::kMin, .base = {}};
  const auto results =
      RunOp(ClassScoresOp::kName, {Sums({1, 3, 1}, {2, kNone, -1})}, rules.ToAttributes());
  EXPECT_THAT(Numbers(results), ElementsAre(-1));
}

TEST(ClassScoresTest, SoftmaxThatKeepsZeros) {
  const ScoreRules rules = {.post = ops::PostTransform::kSoftmaxZero, .base = {}};
  const auto results =
      RunOp(ClassScoresOp::kName, {Sums({1, 1, 3}, {1, 0, 1})}, rules.ToAttributes());
  EXPECT_THAT(Numbers(results), ElementsAre(0.5, 0, 0.5));
}

TEST(ClassScoresTest, ProbitIsTheQuantileOfANormalDistribution) {
  const ScoreRules rules = {.post = ops::PostTransform::kProbit, .base = {}};
  const auto results =
      RunOp(ClassScoresOp::kName, {Sums({1, 1, 2}, {0.5, 0.9})}, rules.ToAttributes());
  EXPECT_NEAR(Numbers(results)[0], 0, 1e-3);
  EXPECT_NEAR(Numbers(results)[1], 1.28155, 1e-3);
}

}  // namespace
}  // namespace reprise
