// Results of as many elements as the data says, against values worked out by hand and by numpy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Attributes With(std::initializer_list<std::pair<const char*, int64_t>> values) {
  Attributes attributes;
  for (const auto& [name, value] : values) attributes.Set(name, value);
  return attributes;
}

TEST(NonZeroTest, ListsCoordinates) {
  const auto result = RunOp("NonZero", {F32({2, 2}, {0, 1, 2, 0})});
  EXPECT_EQ(ShapeOf(result), (Shape{2, 2}));
  EXPECT_THAT(Numbers(result), ElementsAre(0, 1, 1, 0));
}

TEST(NonZeroTest, ZerosAloneGiveNoColumn) {
  EXPECT_EQ(ShapeOf(RunOp("NonZero", {I64({2, 3}, {0, 0, 0, 0, 0, 0})})), (Shape{2, 0}));
}

TEST(CompressTest, KeepsSlicesAlongAnAxis) {
  const Tensor data = F32({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto rows = RunOp("Compress", {data, Bools({3}, {0, 1, 1})}, With({{"axis", 0}}));
  EXPECT_EQ(ShapeOf(rows), (Shape{2, 2}));
  EXPECT_THAT(Numbers(rows), ElementsAre(3, 4, 5, 6));
  const auto columns = RunOp("Compress", {data, Bools({2}, {0, 1})}, With({{"axis", -1}}));
  EXPECT_EQ(ShapeOf(columns), (Shape{3, 1}));
  EXPECT_THAT(Numbers(columns), ElementsAre(2, 4, 6));
}

TEST(CompressTest, WithoutAxisTheElementsAreFlat) {
  const auto result =
      RunOp("Compress", {I64({2, 3}, {1, 2, 3, 4, 5, 6}), Bools({5}, {0, 1, 0, 0, 1})});
  EXPECT_EQ(ShapeOf(result), (Shape{2}));
  EXPECT_THAT(Numbers(result), ElementsAre(2, 5));
}

TEST(CompressTest, ConditionsBeyondTheEndCountForNothing) {
  const auto result =
      RunOp("Compress", {I64({2}, {7, 8}), Bools({4}, {0, 1, 1, 1})}, With({{"axis", 0}}));
  EXPECT_THAT(Numbers(result), ElementsAre(8));
}

TEST(UniqueTest, SortedWithPositionsInverseAndCounts) {
  const auto result =
      RunOp("Unique", {F32({6}, {2, 1, 1, 3, 4, 3})}, With({{"sorted", 1}}), /*num_outputs=*/4);
  EXPECT_THAT(Numbers(result, 0), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Numbers(result, 1), ElementsAre(1, 0, 3, 4));
  EXPECT_THAT(Numbers(result, 2), ElementsAre(1, 0, 0, 2, 3, 2));
  EXPECT_THAT(Numbers(result, 3), ElementsAre(2, 1, 2, 1));
}

TEST(UniqueTest, UnsortedIsInOrderOfFirstOccurrence) {
  const auto result =
      RunOp("Unique", {F32({6}, {2, 1, 1, 3, 4, 3})}, With({{"sorted", 0}}), /*num_outputs=*/4);
  EXPECT_THAT(Numbers(result, 0), ElementsAre(2, 1, 3, 4));
  EXPECT_THAT(Numbers(result, 1), ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(Numbers(result, 2), ElementsAre(0, 1, 1, 2, 3, 2));
  EXPECT_THAT(Numbers(result, 3), ElementsAre(1, 2, 2, 1));
}

TEST(UniqueTest, AlongAnAxisWholeSlicesAreCompared) {
  const Tensor rows = I64({3, 3}, {1, 0, 0, 1, 0, 0, 2, 3, 4});
  const auto by_row = RunOp("Unique", {rows}, With({{"axis", 0}}), /*num_outputs=*/4);
  EXPECT_EQ(ShapeOf(by_row), (Shape{2, 3}));
  EXPECT_THAT(Numbers(by_row), ElementsAre(1, 0, 0, 2, 3, 4));
  EXPECT_THAT(Numbers(by_row, 2), ElementsAre(0, 0, 1));
  const Tensor columns = I64({2, 4}, {1, 1, 0, 1, 1, 1, 2, 1});
  const auto by_column = RunOp("Unique", {columns}, With({{"axis", -1}}), /*num_outputs=*/4);
  EXPECT_EQ(ShapeOf(by_column), (Shape{2, 2}));
  EXPECT_THAT(Numbers(by_column), ElementsAre(0, 1, 2, 1));
  EXPECT_THAT(Numbers(by_column, 1), ElementsAre(2, 0));
  EXPECT_THAT(Numbers(by_column, 3), ElementsAre(1, 3));
}

TEST(UniqueTest, WhatIsNoNumberIsOneElementAndTheLast) {
  const auto result = RunOp("Unique", {F32({4}, {NAN, 1, NAN, -1})}, {}, /*num_outputs=*/4);
  const std::vector<double> values = Numbers(result);
  ASSERT_EQ(values.size(), 3);
  EXPECT_EQ(values[0], -1);
  EXPECT_TRUE(std::isnan(values[2]));
  EXPECT_THAT(Numbers(result, 3), ElementsAre(1, 1, 2));
}

TEST(UniqueTest, NothingInGivesNothing) {
  const auto result = RunOp("Unique", {F32({0}, {})}, {}, /*num_outputs=*/4);
  EXPECT_EQ(ShapeOf(result), (Shape{0}));
  EXPECT_EQ(ShapeOf(result, 3), (Shape{0}));
}

// Three pairs of boxes: the first two overlap by half, the third lies apart.
const std::vector<float> kBoxes = {0, 0,  1, 1,  0, 0.1f,  1, 1.1f,  0, -0.1f, 1, 0.9f,
                                   0, 10, 1, 11, 0, 10.1f, 1, 11.1f, 0, 100,   1, 101};
const std::vector<float> kScores = {0.9f, 0.75f, 0.6f, 0.95f, 0.5f, 0.3f};

OptionalTensors Boxes(int64_t most, float overlap, std::optional<float> score) {
  OptionalTensors inputs = {F32({1, 6, 4}, kBoxes), F32({1, 1, 6}, kScores), I64({1}, {most}),
                            F32({1}, {overlap})};
  if (score.has_value()) inputs.push_back(F32({1}, {*score}));
  return inputs;
}

TEST(NonMaxSuppressionTest, KeepsTheBestOfOverlappingBoxes) {
  const auto result = RunOp("NonMaxSuppression", Boxes(3, 0.5f, 0.0f));
  EXPECT_EQ(ShapeOf(result), (Shape{3, 3}));
  EXPECT_THAT(Numbers(result), ElementsAre(0, 0, 3, 0, 0, 0, 0, 0, 5));
  EXPECT_THAT(Numbers(RunOp("NonMaxSuppression", Boxes(2, 0.5f, 0.0f))),
              ElementsAre(0, 0, 3, 0, 0, 0));
  EXPECT_THAT(Numbers(RunOp("NonMaxSuppression", Boxes(3, 0.5f, 0.4f))),
              ElementsAre(0, 0, 3, 0, 0, 0));
}

TEST(NonMaxSuppressionTest, CornersMayBeGivenInAnyOrderAndAsCentres) {
  std::vector<float> flipped = kBoxes, centres = kBoxes;
  for (size_t i = 0; i < kBoxes.size(); i += 4) {
    std::swap(flipped[i], flipped[i + 2]);
    centres[i] = (kBoxes[i + 1] + kBoxes[i + 3]) / 2;
    centres[i + 1] = (kBoxes[i] + kBoxes[i + 2]) / 2;
    centres[i + 2] = kBoxes[i + 3] - kBoxes[i + 1];
    centres[i + 3] = kBoxes[i + 2] - kBoxes[i];
  }
  OptionalTensors inputs = Boxes(3, 0.5f, 0.0f);
  inputs[0] = F32({1, 6, 4}, flipped);
  EXPECT_THAT(Numbers(RunOp("NonMaxSuppression", inputs)), ElementsAre(0, 0, 3, 0, 0, 0, 0, 0, 5));
  inputs[0] = F32({1, 6, 4}, centres);
  EXPECT_THAT(Numbers(RunOp("NonMaxSuppression", inputs, With({{"center_point_box", 1}}))),
              ElementsAre(0, 0, 3, 0, 0, 0, 0, 0, 5));
}

TEST(NonMaxSuppressionTest, BatchesAndClassesAreSuppressedApart) {
  const auto result =
      RunOp("NonMaxSuppression", {F32({2, 2, 4}, {0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 5, 5, 6, 6}),
                                  F32({2, 2, 2}, {0.1f, 0.2f, 0.9f, 0.8f, 0.5f, 0.5f, 0.3f, 0.4f}),
                                  I64({}, {5}), F32({}, {0.5f})});
  EXPECT_THAT(Numbers(result), ElementsAre(0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 1, 1, 1, 1, 1, 1, 0));
}

// Boxes in a line, the best first; an earlier box covers nearly all of each later one.
TEST(NonMaxSuppressionTest, EachBoxIsComparedWithAllThatAreKept) {
  constexpr int64_t kKept = 77;
  std::vector<float> boxes, scores;
  for (int64_t i = 0; i < 2 * kKept; ++i) {
    const auto x = static_cast<float>(i % kKept * 2);
    const float more = i < kKept ? 0.0f : 0.1f;
    for (const float corner : {0.0f, x, 1.0f, x + 1 + more}) boxes.push_back(corner);
    scores.push_back(1 - static_cast<float>(i) / 1000);
  }
  const auto select = [&](float overlap) {
    return ShapeOf(
        RunOp("NonMaxSuppression", {F32({1, 2 * kKept, 4}, boxes), F32({1, 1, 2 * kKept}, scores),
                                    I64({}, {3 * kKept}), F32({}, {overlap})}));
  };
  EXPECT_EQ(select(0.9f), (Shape{kKept, 3}));
  EXPECT_EQ(select(0.95f), (Shape{2 * kKept, 3}));
}

TEST(NonMaxSuppressionTest, WithoutALimitNothingIsSelected) {
  const auto result = RunOp("NonMaxSuppression", {F32({1, 6, 4}, kBoxes), F32({1, 1, 6}, kScores)});
  EXPECT_EQ(ShapeOf(result), (Shape{0, 3}));
  EXPECT_THAT(Numbers(result), IsEmpty());
}

TEST(NonMaxSuppressionTest, OperandsThatDoNotAgreeAreRefused) {
  const auto shapes = RunOp("NonMaxSuppression", {F32({1, 6, 4}, kBoxes), F32({1, 2, 3}, kScores)});
  EXPECT_THAT(shapes.status().message(), HasSubstr("do not agree"));
  const auto overlap = RunOp("NonMaxSuppression", Boxes(3, 1.5f, 0.0f));
  EXPECT_THAT(overlap.status().message(), HasSubstr("iou_threshold is 1.5"));
}

}  // namespace
}  // namespace reprise
