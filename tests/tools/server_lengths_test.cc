#include "tools/server_lengths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

namespace reprise::cli {
namespace {

using ::testing::HasSubstr;

v1::ModelDynamicity Report() {
  v1::ModelDynamicity report;
  report.set_model("bert");
  report.set_version("3");
  report.add_axes()->set_axis("batch");
  report.add_axes()->set_axis("sequence");
  for (const auto& [rows, length, requests] :
       {std::tuple(1, 40, 10), std::tuple(4, 40, 2), std::tuple(2, 7, 5)}) {
    v1::RequestShape& shape = *report.add_shapes();
    shape.add_sizes(rows);
    shape.add_sizes(length);
    shape.set_requests(requests);
  }
  return report;
}

TEST(ServerLengthsTest, EveryRowOfARequestIsALength) {
  const auto found = LengthsAlong(Report(), {}, {}, "sequence");
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  ASSERT_EQ(found->lengths.size(), 2u);
  EXPECT_EQ(found->lengths[0].size, 7);
  EXPECT_EQ(found->lengths[0].weight, 10);
  EXPECT_EQ(found->lengths[1].size, 40);
  EXPECT_EQ(found->lengths[1].weight, 18);
  EXPECT_EQ(found->capture_ms, 0);
  const auto rows = LengthsAlong(Report(), {}, {}, "batch");
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->lengths[0].weight, 10);  // requests of one row
}

TEST(ServerLengthsTest, RecipesSayWhatAnElementAndACaptureCost) {
  v1::ListRecipesResponse recipes;
  v1::RecipeInfo& one = *recipes.add_recipes();
  one.set_binding("batch=2,sequence=100");
  one.set_arena_bytes(1000);
  one.set_capture_ms(30);
  v1::RecipeInfo& two = *recipes.add_recipes();
  two.set_binding("batch=1,sequence=50");
  two.set_arena_bytes(250);
  two.set_capture_ms(10);
  const auto found = LengthsAlong(Report(), recipes, {}, "sequence");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->bytes_per_element, 5);
  EXPECT_EQ(found->capture_ms, 20);
}

TEST(ServerLengthsTest, TimesOfReplaysAreThoseThatTheServerMeasured) {
  v1::BucketLearning learnt;
  learnt.add_in_force()->set_axis("sequence");
  for (const auto& [size, ns] : {std::pair(10, 500.0), std::pair(20, 800.0)}) {
    v1::ReplayTimes& times = *learnt.add_replay_times();
    times.set_row_size(size);
    times.set_replays(1000);
    times.set_rows(1000);
    times.set_rows_squared(1000);
    times.set_ns(1000 * ns);
    times.set_rows_times_ns(1000 * ns);
  }
  const auto found = LengthsAlong(Report(), {}, learnt, "sequence");
  ASSERT_TRUE(found.ok());
  EXPECT_NEAR(found->cost.Ns(1, 10), 500, 10);
  EXPECT_NEAR(found->cost.Ns(1, 15), 650, 10);
  EXPECT_NEAR(found->cost.Ns(1, 20), 800, 10);
  // A size along one of two axes does not say how many elements a row has.
  learnt.add_in_force()->set_axis("width");
  EXPECT_EQ(LengthsAlong(Report(), {}, learnt, "sequence")->cost.replays(), 0);
}

TEST(ServerLengthsTest, WhatCannotBePlannedIsNamed) {
  EXPECT_THAT(std::string(LengthsAlong(Report(), {}, {}, "height").status().message()),
              HasSubstr("no axis 'height'; it has: batch, sequence"));
  v1::ModelDynamicity idle = Report();
  idle.clear_shapes();
  EXPECT_EQ(LengthsAlong(idle, {}, {}, "sequence").status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace reprise::cli
