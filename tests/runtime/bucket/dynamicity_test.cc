#include "runtime/bucket/dynamicity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace reprise {
namespace {

// `shapes` lengths, equally frequent.
Dynamicity JudgeEqual(int shapes) {
  ShapeRecorder recorder;
  for (int i = 0; i < 960; ++i) recorder.Record({1, 10 + i % shapes}, ShapeService::kReady);
  return JudgeShapes(recorder.Snapshot(), /*recent=*/true);
}

TEST(DynamicityTest, VerdictFollowsTheNumberOfShapesThatCount) {
  EXPECT_EQ(JudgeEqual(1).verdict, DynamicityVerdict::kLittle);
  EXPECT_EQ(JudgeEqual(4).verdict, DynamicityVerdict::kLittle);
  EXPECT_EQ(JudgeEqual(5).verdict, DynamicityVerdict::kSome);
  EXPECT_EQ(JudgeEqual(32).verdict, DynamicityVerdict::kSome);
  EXPECT_EQ(JudgeEqual(40).verdict, DynamicityVerdict::kALot);
}

TEST(DynamicityTest, EqualShapesAllCountAndRareOnesHardly) {
  EXPECT_NEAR(JudgeEqual(8).entropy_bits, 3, 1e-9);
  EXPECT_NEAR(JudgeEqual(8).shapes_that_count, 8, 1e-6);
  ShapeRecorder recorder(std::numeric_limits<int64_t>::max());
  recorder.Record({64}, ShapeService::kReady, 100'000);
  for (int i = 0; i < 100; ++i) recorder.Record({100 + i}, ShapeService::kReady);
  const Dynamicity judged = JudgeShapes(recorder.Snapshot(), /*recent=*/true);
  EXPECT_LT(judged.shapes_that_count, 1.1);
  EXPECT_EQ(judged.verdict, DynamicityVerdict::kLittle);
}

TEST(DynamicityTest, FewShapesThatFindNoRecipeAreSome) {
  ShapeRecorder recorder;
  for (int i = 0; i < 200; ++i) {
    recorder.Record({64}, i % 10 == 0 ? ShapeService::kOutside : ShapeService::kReady);
  }
  const Dynamicity judged = JudgeShapes(recorder.Snapshot(), /*recent=*/true);
  EXPECT_NEAR(judged.outside_share, 0.1, 1e-9);
  EXPECT_EQ(judged.verdict, DynamicityVerdict::kSome);
}

TEST(DynamicityTest, TheFirstRequestOfTheOnlyShapeIsLittle) {
  ShapeRecorder recorder;
  recorder.Record({64}, ShapeService::kOutside);
  EXPECT_EQ(JudgeShapes(recorder.Snapshot(), /*recent=*/true).verdict, DynamicityVerdict::kLittle);
  recorder.Record({65}, ShapeService::kOutside);
  EXPECT_EQ(JudgeShapes(recorder.Snapshot(), /*recent=*/true).verdict, DynamicityVerdict::kSome);
}

TEST(DynamicityTest, TheAxisThatVariesMostIsTheCause) {
  ShapeRecorder recorder;
  for (int i = 0; i < 512; ++i) recorder.Record({1 + i % 3, i % 50, 7}, ShapeService::kReady);
  const Dynamicity judged = JudgeShapes(recorder.Snapshot(), /*recent=*/true);
  EXPECT_EQ(judged.cause, 1);
  EXPECT_EQ(judged.axes[1].distinct, 50);
  EXPECT_EQ(judged.axes[1].least, 0);
  EXPECT_EQ(judged.axes[1].most, 49);
  EXPECT_EQ(judged.axes[2].entropy_bits, 0);
  EXPECT_EQ(JudgeEqual(1).cause, -1);
}

TEST(DynamicityTest, NothingThatCameIsLittleAndWithoutATrend) {
  const Dynamicity judged = JudgeShapes(ShapeTable(), /*recent=*/true);
  EXPECT_EQ(judged.verdict, DynamicityVerdict::kLittle);
  EXPECT_EQ(judged.trend, DynamicityTrend::kUnknown);
  EXPECT_EQ(judged.cause, -1);
  EXPECT_EQ(judged.shapes_that_count, 0);
}

// Windows of lengths uniform in [first, first + width).
class TrendTest : public testing::Test {
 protected:
  void Window(int64_t first, int64_t width) {
    for (int i = 0; i < 1024; ++i) {
      recorder_.Record({first + static_cast<int64_t>(random_() % width)}, ShapeService::kReady);
    }
  }
  DynamicityTrend Trend() { return JudgeShapes(recorder_.Snapshot(), /*recent=*/true).trend; }

  std::mt19937_64 random_{5};
  ShapeRecorder recorder_;
};

TEST_F(TrendTest, OneWindowHasNone) {
  Window(10, 50);
  EXPECT_EQ(Trend(), DynamicityTrend::kUnknown);
}

TEST_F(TrendTest, TheSameTrafficIsSteadyForAHundredWindows) {
  Window(10, 200);
  for (int i = 0; i < 100; ++i) {
    Window(10, 200);
    ASSERT_EQ(Trend(), DynamicityTrend::kSteady) << i;
  }
}

TEST_F(TrendTest, MoreShapesGrowFewerShrinkOthersMove) {
  Window(10, 50);
  Window(10, 100);
  EXPECT_EQ(Trend(), DynamicityTrend::kGrowing);
  Window(10, 50);
  EXPECT_EQ(Trend(), DynamicityTrend::kShrinking);
  Window(200, 50);
  EXPECT_EQ(Trend(), DynamicityTrend::kMoving);
  EXPECT_NEAR(JudgeShapes(recorder_.Snapshot(), true).axes[0].moved, 1, 1e-9);
}

TEST_F(TrendTest, WhatWasBeforeTheLastWindowsIsNotJudgedAsRecent) {
  Window(10, 200);
  for (int i = 0; i < 3; ++i) Window(10, 1);
  const ShapeTable table = recorder_.Snapshot();
  EXPECT_EQ(JudgeShapes(table, /*recent=*/true).verdict, DynamicityVerdict::kLittle);
  EXPECT_GT(JudgeShapes(table, /*recent=*/false).shapes_that_count, 4);
}

}  // namespace
}  // namespace reprise
