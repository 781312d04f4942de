#include "tools/serve/pooled_usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/recipe.pb.h"

namespace reprise::cli {
namespace {

using recipe::v1::StoredUsage;
using ::testing::ElementsAre;

struct Traffic {
  int64_t length;
  double weight;
  std::vector<int64_t> boundaries;
  std::string device = "cpu";
  int64_t start = 512;
};

std::string UsageOf(const Traffic& traffic, uint64_t key, uint64_t uses) {
  StoredUsage usage;
  usage.set_graph("g");
  usage.set_model("bert");
  usage.set_updated_unix_s(traffic.length);
  auto& use = *usage.add_recipes();
  use.set_key(key);
  use.set_uses(uses);
  auto& learnt = *usage.mutable_learnt();
  learnt.set_device(traffic.device);
  auto& axis = *learnt.add_axes();
  axis.set_label("sequence");
  axis.add_start(traffic.start);
  axis.mutable_boundaries()->Add(traffic.boundaries.begin(), traffic.boundaries.end());
  auto& seen = *learnt.add_first_half();
  seen.add_sizes(traffic.length);
  seen.set_weight(traffic.weight);
  auto& batch = *learnt.add_batches();
  batch.set_rows(1);
  batch.set_weight(traffic.weight);
  auto& cost = *learnt.add_costs();
  cost.set_row_size(64);
  cost.set_weight(1);
  cost.set_ns(100);
  return usage.SerializeAsString();
}

StoredUsage Pool(const std::vector<std::string>& payloads) {
  StoredUsage usage;
  EXPECT_TRUE(usage.ParseFromString(PoolUsage(payloads)));
  return usage;
}

TEST(PooledUsageTest, UsesSizesBatchesAndTimesAddUp) {
  const StoredUsage pooled =
      Pool({UsageOf({.length = 40, .weight = 3, .boundaries = {40, 512}}, 1, 5),
            UsageOf({.length = 90, .weight = 9, .boundaries = {90, 512}}, 1, 2),
            UsageOf({.length = 40, .weight = 4, .boundaries = {512}}, 2, 9)});
  ASSERT_EQ(pooled.recipes_size(), 2);
  EXPECT_EQ(pooled.recipes(0).key(), 2);  // the most used first
  EXPECT_EQ(pooled.recipes(1).uses(), 7);
  const auto& learnt = pooled.learnt();
  ASSERT_EQ(learnt.first_half_size(), 2);
  EXPECT_EQ(learnt.first_half(0).sizes(0), 40);
  EXPECT_EQ(learnt.first_half(0).weight(), 7);
  EXPECT_EQ(learnt.first_half(1).weight(), 9);
  EXPECT_EQ(learnt.batches(0).weight(), 16);
  EXPECT_EQ(learnt.costs(0).ns(), 300);
  EXPECT_EQ(pooled.updated_unix_s(), 90);
}

TEST(PooledUsageTest, BucketsInForceAreThoseOfTheServerThatSawMost) {
  const StoredUsage pooled =
      Pool({UsageOf({.length = 40, .weight = 3, .boundaries = {40, 512}}, 1, 1),
            UsageOf({.length = 90, .weight = 9, .boundaries = {90, 512}}, 1, 1)});
  EXPECT_THAT(pooled.learnt().axes(0).boundaries(), ElementsAre(90, 512));
}

TEST(PooledUsageTest, OtherConfigurationsAndDevicesKeepTheirSizesAndTimes) {
  const StoredUsage pooled =
      Pool({UsageOf({.length = 40, .weight = 9, .boundaries = {512}}, 1, 1),
            UsageOf({.length = 90, .weight = 3, .boundaries = {256}, .start = 256}, 2, 1),
            UsageOf({.length = 70, .weight = 2, .boundaries = {512}, .device = "other"}, 3, 1)});
  EXPECT_EQ(pooled.recipes_size(), 3);
  ASSERT_EQ(pooled.learnt().first_half_size(), 2);
  EXPECT_EQ(pooled.learnt().first_half(1).sizes(0), 70);
  EXPECT_EQ(pooled.learnt().costs(0).ns(), 100);
}

TEST(PooledUsageTest, WhatIsNoMessageIsLeftOut) {
  EXPECT_EQ(PoolUsage({"\xff\xff"}), "");
  EXPECT_EQ(Pool({"\xff\xff", UsageOf({.length = 40, .weight = 1, .boundaries = {512}}, 1, 5)})
                .recipes(0)
                .uses(),
            5);
}

}  // namespace
}  // namespace reprise::cli
