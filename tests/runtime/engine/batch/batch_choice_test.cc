// Which of the requests that wait share a replay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/engine_fixture.h"
#include "tests/testing/masked_mean.h"

namespace reprise {
namespace {

using testing::ElementsAre;

class BatchChoiceTest : public testing::Test {
 protected:
  // A replay costs as much as 200 tokens, whatever is in it.
  BatchChoiceTest()
      : model_(LoadBytes(
            fixture_.engine, MaskedMeanModel(),
            {.buckets = {{"sequence", {16, 48, 64}}}, .capture = CapturePolicy::kInline})) {
    for (int i = 0; i < 400; ++i) {
      for (const int64_t size : {16, 48, 64}) {
        const int64_t rows = 1 + i % 8;
        model_->learner().RecordReplay({.rows = rows,
                                        .batch_bucket = 8,
                                        .row_size = size,
                                        .valid = rows * size,
                                        .ns = 200'000 + 1000 * rows * size});
      }
    }
  }

  RequestShape Shape(int64_t rows, int64_t length) {
    const MeanRequest request(rows, length);
    return *model_->Measure(request.request);
  }

  // Returns the positions that share a replay with the first one, as the queue finds them.
  std::vector<size_t> Together(const std::vector<RequestShape>& shapes) {
    std::vector<const RequestShape*> waiting;
    for (const RequestShape& shape : shapes) waiting.push_back(&shape);
    BatchPlan plan(*model_);
    EXPECT_TRUE(plan.TryAdd(shapes[0]));
    std::vector<size_t> together = {0};
    for (const size_t position : plan.Choose(waiting)) {
      if (position == 0) continue;
      EXPECT_TRUE(plan.TryAdd(shapes[position], nullptr, /*chosen=*/true));
      together.push_back(position);
    }
    return together;
  }

  EngineFixture fixture_;
  std::shared_ptr<Model> model_;
};

TEST_F(BatchChoiceTest, RequestsOfOneBucketShareAReplay) {
  EXPECT_THAT(Together({Shape(1, 60), Shape(1, 10), Shape(2, 64)}), ElementsAre(0, 2));
}

TEST_F(BatchChoiceTest, AnotherBucketJoinsWhereThatPadsLittle) {
  // 48 among 16 rows of 64 pads 1.5%; with one of them it would pad 12%.
  EXPECT_THAT(Together({Shape(1, 40), Shape(16, 60)}), ElementsAre(0, 1));
  EXPECT_THAT(Together({Shape(1, 40), Shape(1, 60)}), ElementsAre(0));
  BatchPlan plan(*model_);
  ASSERT_TRUE(plan.TryAdd(Shape(1, 40)));
  EXPECT_FALSE(plan.TryAdd(Shape(1, 60)));
}

TEST_F(BatchChoiceTest, LengthBeyondTheLargestBucketIsSharedOnlyWithItsEqual) {
  for (const bool chosen : {false, true}) {
    BatchPlan plan(*model_);
    ASSERT_TRUE(plan.TryAdd(Shape(1, 100)));
    EXPECT_FALSE(plan.TryAdd(Shape(1, 90), nullptr, chosen)) << "it would be padded to 100";
    EXPECT_FALSE(plan.TryAdd(Shape(1, 110), nullptr, chosen)) << "the other would be";
    EXPECT_FALSE(plan.TryAdd(Shape(1, 60), nullptr, chosen));
    EXPECT_TRUE(plan.TryAdd(Shape(1, 100), nullptr, chosen));
  }
}

TEST_F(BatchChoiceTest, WhatIsWorthItAllTogetherIsAddedOneByOne) {
  std::vector<RequestShape> shapes = {Shape(1, 40)};
  for (int i = 0; i < 16; ++i) shapes.push_back(Shape(1, 60));
  EXPECT_EQ(Together(shapes).size(), 17u);
}

}  // namespace
}  // namespace reprise
