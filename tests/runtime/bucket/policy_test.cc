#include "runtime/bucket/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::set<std::string> kBoth = {"batch", "sequence"};

BucketPolicy Bert() { return BucketPolicy::Default("batch", {"sequence"}); }

AxisSizes Sizes(int64_t batch, int64_t sequence) {
  return {{"batch", batch}, {"sequence", sequence}};
}

TEST(BucketPolicyTest, DefaultRowsArePowersOfTwoUpToTheMost) {
  EXPECT_THAT(BucketPolicy::DefaultRows(), ElementsAre(1, 2, 4, 8, 16, 32));
  EXPECT_THAT(BucketPolicy::DefaultRows(1), ElementsAre(1));
  EXPECT_THAT(BucketPolicy::DefaultRows(7), ElementsAre(1, 2, 4));
  EXPECT_THAT(BucketPolicy::DefaultRows(8), ElementsAre(1, 2, 4, 8));
}

TEST(BucketPolicyTest, DefaultsAreValid) {
  EXPECT_TRUE(Bert().Validate().ok());
  EXPECT_TRUE(BucketPolicy::Default("", {"past", "sequence"}).Validate().ok());
  EXPECT_TRUE(BucketPolicy().Validate().ok());
}

TEST(BucketPolicyTest, BadBucketsAreNamedWithAxisAndValue) {
  const auto error = [](std::vector<AxisBuckets> axes, std::string batch = "",
                        int64_t limit = 4096) {
    BucketPolicy policy;
    policy.axes = std::move(axes);
    policy.batch_axis = std::move(batch);
    policy.max_batch_tokens = limit;
    const absl::Status status = policy.Validate();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(error({{"sequence", {}}}), HasSubstr("'sequence' are empty"));
  EXPECT_THAT(error({{"sequence", {0, 16}}}), HasSubstr("'sequence': 0 is not positive"));
  EXPECT_THAT(error({{"sequence", {32, 16}}}), HasSubstr("'sequence': 16 after 32"));
  EXPECT_THAT(error({{"sequence", {16, 16}}}), HasSubstr("'sequence': 16 after 16"));
  EXPECT_THAT(error({{"a", {16}}, {"a", {32}}}), HasSubstr("'a' has buckets twice"));
  EXPECT_THAT(error({{"a", {16}}}, "batch"), HasSubstr("'batch' has no buckets"));
  EXPECT_THAT(error({}, "", 0), HasSubstr("max_batch_tokens is 0"));
}

TEST(BucketPolicyTest, TheSmallestBucketThatHoldsASizeIsTaken) {
  const BucketPolicy policy = Bert();
  EXPECT_EQ(policy.Fit("sequence", 1), 16);
  EXPECT_EQ(policy.Fit("sequence", 16), 16);
  EXPECT_EQ(policy.Fit("sequence", 17), 32);
  EXPECT_EQ(policy.Fit("sequence", 512), 512);
  EXPECT_EQ(policy.Fit("sequence", 513), std::nullopt);
  EXPECT_EQ(policy.Fit("unknown", 1), std::nullopt);
}

TEST(BucketPolicyTest, SizesThatAModelRefusesAreDroppedFromTheTop) {
  BucketPolicy policy = Bert();
  EXPECT_THAT(policy.DropRefused("sequence", [](int64_t size) { return size <= 130; }),
              ElementsAre(256, 512));
  EXPECT_EQ(policy.Largest("sequence"), 128);
  EXPECT_THAT(policy.DropRefused("sequence", [](int64_t) { return true; }), ElementsAre());
  EXPECT_THAT(policy.DropRefused("unknown", [](int64_t) { return false; }), ElementsAre());
  EXPECT_EQ(policy.DropRefused("sequence", [](int64_t) { return false; }).size(), 4u);
  EXPECT_EQ(policy.Largest("sequence"), std::nullopt);
  EXPECT_TRUE(policy.Validate().ok());
}

TEST(BucketPolicyTest, OnlyCertifiedAxesAreBucketed) {
  const BucketPolicy policy = Bert();
  EXPECT_EQ(*policy.FitBinding(Sizes(3, 100), kBoth), Sizes(4, 128));
  EXPECT_EQ(*policy.FitBinding(Sizes(3, 100), {"batch"}), Sizes(4, 100));
  EXPECT_EQ(*policy.FitBinding(Sizes(3, 100), {"sequence"}), Sizes(3, 128));
  EXPECT_EQ(*policy.FitBinding(Sizes(3, 100), {}), Sizes(3, 100));
}

TEST(BucketPolicyTest, BeyondTheLargestIsExactOrRefusedAsConfigured) {
  BucketPolicy policy = Bert();
  EXPECT_EQ(*policy.FitBinding(Sizes(3, 600), kBoth), Sizes(3, 600));
  EXPECT_FALSE(policy.IsBucket(Sizes(3, 600), kBoth));
  policy.overflow = BucketPolicy::Overflow::kReject;
  const auto fitted = policy.FitBinding(Sizes(3, 600), kBoth);
  EXPECT_EQ(fitted.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(fitted.status().message(), "axis 'sequence' has size 600, the largest bucket is 512");
  EXPECT_TRUE(policy.FitBinding(Sizes(3, 600), {"batch"}).ok());
}

// Samples of recordings: none of the buckets is as long as the requests.
BucketPolicy Recordings(int64_t opens_to, int64_t step = 1) {
  BucketPolicy policy = BucketPolicy::Default("batch", {"samples"});
  policy.axes[1].opens_to = opens_to;
  policy.axes[1].step = step;
  policy.max_opened_elements = opens_to;
  return policy;
}

TEST(BucketPolicyTest, SizesBeyondTheLargestBucketOpenTheNextOnes) {
  const BucketPolicy policy = Recordings(20000);
  EXPECT_EQ(policy.Fit("samples", 512), 512);
  EXPECT_EQ(policy.Fit("samples", 513), 640);
  EXPECT_EQ(policy.Fit("samples", 640), 640);
  EXPECT_EQ(policy.Fit("samples", 641), 800);
  EXPECT_EQ(policy.Fit("samples", 801), 992);
  EXPECT_EQ(policy.Fit("samples", 19999), 20000);
  EXPECT_EQ(policy.Fit("samples", 20001), std::nullopt);
  EXPECT_EQ(policy.Largest("samples"), 20000);
  EXPECT_THAT(policy.axes[1].NextOpened(3), ElementsAre(640, 800, 992));
  EXPECT_TRUE(policy.IsOpened("samples", 800));
  EXPECT_FALSE(policy.IsOpened("samples", 801));
  EXPECT_FALSE(policy.IsOpened("samples", 512));
  EXPECT_TRUE(policy.Validate().ok());
}

TEST(BucketPolicyTest, FewOpenedBucketsHoldManyLengthsWithLittlePadding) {
  const BucketPolicy policy = Recordings(1 << 20);
  std::set<int64_t> buckets;
  double valid = 0, computed = 0;
  for (int i = 0; i < 40; ++i) {
    const int64_t size = 900 + i * (16000 - 900) / 39;
    const int64_t bucket = policy.Fit("samples", size).value();
    EXPECT_LE(bucket, size + size / 4);
    buckets.insert(bucket);
    valid += static_cast<double>(size);
    computed += static_cast<double>(bucket);
  }
  EXPECT_LE(buckets.size(), 14u);
  EXPECT_LE(1 - valid / computed, 0.25);
}

TEST(BucketPolicyTest, OpenedBucketsAreMultiplesThatTheModelTakes) {
  for (const int64_t step : {1, 3, 14, 32, 100, 512}) {
    BucketPolicy policy = Recordings(1 << 20 >> 9 << 9, step);
    policy.axes[1].sizes = {(512 + step - 1) / step * step};
    policy.axes[1].opens_to = policy.axes[1].sizes[0] + 1000 * step;
    int64_t before = policy.axes[1].sizes[0];
    for (const int64_t size : policy.axes[1].NextOpened(100)) {
      EXPECT_EQ(size % step, 0) << size;
      EXPECT_GT(size, before);
      EXPECT_LE(size, std::max(before + before / 4, before + step));
      before = size;
    }
    EXPECT_EQ(before, policy.axes[1].opens_to);
  }
}

TEST(BucketPolicyTest, OpenedBucketsHaveLabelsAndAreNoneOfAll) {
  const BucketPolicy policy = Recordings(20000);
  const AxisSizes opened = {{"batch", 2}, {"samples", 800}};
  EXPECT_EQ(*policy.FitBinding({{"batch", 2}, {"samples", 700}}, {"batch", "samples"}), opened);
  EXPECT_TRUE(policy.IsBucket(opened, {"batch", "samples"}));
  EXPECT_EQ(policy.FindBucket("b2_s800"), opened);
  EXPECT_EQ(policy.FindBucket("b2_s801"), std::nullopt);
  EXPECT_EQ(policy.AllBuckets()->size(),
            BucketPolicy::Default("batch", {"samples"}).AllBuckets()->size());
  // More than max_batch_tokens: one row alone.
  EXPECT_EQ(policy.LargestBatch({{"samples", 8000}}), 1);
}

TEST(BucketPolicyTest, SeveralAxesOpenWithinTheMemoryOfARow) {
  BucketPolicy policy = BucketPolicy::Default("batch", {"height", "width"});
  for (AxisBuckets& axis : policy.axes) axis.opens_to = axis.axis == "batch" ? 0 : 4096;
  policy.max_opened_elements = 4096 * 512;
  const std::set<std::string> all = {"batch", "height", "width"};
  const auto fit = [&](int64_t height, int64_t width) {
    return *policy.FitBinding({{"batch", 1}, {"height", height}, {"width", width}}, all);
  };
  EXPECT_EQ(fit(4000, 500), (AxisSizes{{"batch", 1}, {"height", 4096}, {"width", 512}}));
  EXPECT_EQ(fit(1000, 1000), (AxisSizes{{"batch", 1}, {"height", 1232}, {"width", 1232}}));
  EXPECT_EQ(fit(4000, 513), (AxisSizes{{"batch", 1}, {"height", 4000}, {"width", 513}}));
  EXPECT_FALSE(policy.IsBucket({{"batch", 1}, {"height", 4096}, {"width", 640}}, all));
}

TEST(BucketPolicyTest, AZeroOnACertifiedAxisIsRefused) {
  const auto fitted = Bert().FitBinding(Sizes(0, 16), kBoth);
  EXPECT_EQ(fitted.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(fitted.status().message()), HasSubstr("'batch' has size 0"));
  EXPECT_EQ(*Bert().FitBinding(Sizes(1, 0), {"batch"}), Sizes(1, 0));
}

TEST(BucketPolicyTest, ProductsAboveTheLimitAreAllowedForTheSmallestBatchAlone) {
  BucketPolicy policy = Bert();
  policy.max_batch_tokens = 100;
  EXPECT_TRUE(policy.WithinLimit(Sizes(1, 512)));
  EXPECT_FALSE(policy.WithinLimit(Sizes(2, 64)));
  EXPECT_TRUE(policy.WithinLimit(Sizes(2, 32)));
  EXPECT_EQ(*policy.FitBinding(Sizes(1, 500), kBoth), Sizes(1, 512));
  EXPECT_EQ(*policy.FitBinding(Sizes(2, 60), kBoth), Sizes(2, 60));  // exact
  // Rows of a batch that may not be split are not limited.
  EXPECT_EQ(*policy.FitBinding(Sizes(2, 60), {"sequence"}), Sizes(2, 64));
  policy.overflow = BucketPolicy::Overflow::kReject;
  EXPECT_THAT(std::string(policy.FitBinding(Sizes(2, 60), kBoth).status().message()),
              HasSubstr("'batch' has size 2, the largest bucket with the other axes is 1"));
}

TEST(BucketPolicyTest, SizesThatOverflowTheirProductAreAboveTheLimit) {
  EXPECT_FALSE(Bert().WithinLimit(Sizes(int64_t{1} << 40, int64_t{1} << 40)));
}

TEST(BucketPolicyTest, LargestBatchShrinksWithLength) {
  const BucketPolicy policy = Bert();
  EXPECT_EQ(policy.LargestBatch({{"sequence", 16}}), 32);
  EXPECT_EQ(policy.LargestBatch({{"sequence", 128}}), 32);
  EXPECT_EQ(policy.LargestBatch({{"sequence", 256}}), 16);
  EXPECT_EQ(policy.LargestBatch({{"sequence", 512}}), 8);
  EXPECT_EQ(policy.LargestBatch({{"sequence", 5000}}), 1);
  EXPECT_EQ(policy.LargestBatch({}), 32);
  EXPECT_EQ(BucketPolicy::Default("", {"sequence"}).LargestBatch({{"sequence", 16}}), 1);
}

TEST(BucketPolicyTest, AllBucketsAreTheProductsWithinTheLimit) {
  const BucketPolicy policy = Bert();
  const std::vector<AxisSizes> all = policy.AllBuckets().value();
  EXPECT_EQ(all.size(), 33u);  // 36 but for 32 x 256, 32 x 512, 16 x 512
  for (const AxisSizes& binding : all) {
    EXPECT_TRUE(policy.IsBucket(binding, kBoth));
    EXPECT_EQ(*policy.FitBinding(binding, kBoth), binding);
  }
  EXPECT_THAT(BucketPolicy::Default("", {"s"}).AllBuckets()->front(),
              ElementsAre(std::pair<const std::string, int64_t>("s", 16)));
  EXPECT_TRUE(BucketPolicy().AllBuckets()->empty());
  EXPECT_EQ(policy.AllBuckets(33)->size(), 33u);
  EXPECT_EQ(policy.AllBuckets(32), std::nullopt);
  EXPECT_EQ(policy.MostBuckets(), 36);
}

// The time of listing grows with the listed buckets, not with the product of the axes.
TEST(BucketPolicyTest, ManyAxesAreNotListed) {
  std::vector<std::string> axes;
  for (int i = 0; i < 40; ++i) axes.push_back(absl::StrCat("a", i));
  const BucketPolicy free = BucketPolicy::Default("", axes);
  EXPECT_EQ(free.AllBuckets(), std::nullopt);
  EXPECT_GT(free.MostBuckets(), 1e30);
  AxisSizes sizes;
  for (const std::string& axis : axes) sizes[axis] = 64;
  EXPECT_EQ(free.FindBucket(BucketLabel(sizes, "")), sizes);
}

TEST(BucketPolicyTest, ALabelFindsItsBucket) {
  const BucketPolicy policy = Bert();
  const std::vector<AxisSizes> all = policy.AllBuckets().value();
  for (const AxisSizes& sizes : all) {
    EXPECT_EQ(policy.FindBucket(BucketLabel(sizes, policy.batch_axis)), sizes);
  }
  for (const char* none :
       {"", "exact", "b8", "s128", "b8_s127", "b8_s128_", "b8_s128_x", "b08_s128", "b8_s", "b_s128",
        "b8s128", "_b8_s128", "b32_s512", "t128", "b8_s-128", "b8_s99999999999999999999"}) {
    EXPECT_EQ(policy.FindBucket(none), std::nullopt) << none;
  }
  BucketPolicy odd;
  odd.batch_axis = "b";
  odd.axes = {{"b", {1, 2}}, {"a_1", {16, 32}}, {"a_1_16", {16, 32}}, {"s8_s8", {8}}};
  odd.max_batch_tokens = 1 << 20;
  const std::vector<AxisSizes> odd_ones = odd.AllBuckets().value();
  EXPECT_EQ(odd_ones.size(), 8u);
  for (const AxisSizes& sizes : odd_ones) {
    EXPECT_EQ(odd.FindBucket(BucketLabel(sizes, "b")), sizes);
  }
  EXPECT_EQ(BucketPolicy().FindBucket("exact"), std::nullopt);
}

TEST(BucketPolicyTest, RandomRequestsGetTheSmallestAllowedBucketThatHoldsThem) {
  std::mt19937 random(3);
  const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  for (int round = 0; round < 500; ++round) {
    BucketPolicy policy;
    policy.batch_axis = "batch";
    policy.max_batch_tokens = 1 + below(3000);
    for (const char* axis : {"batch", "sequence", "past"}) {
      std::vector<int64_t> sizes = {1 + below(8)};
      while (below(4) != 0) sizes.push_back(sizes.back() + 1 + below(60));
      policy.axes.push_back({axis, sizes});
    }
    ASSERT_TRUE(policy.Validate().ok());
    const AxisSizes request = {
        {"batch", 1 + below(40)}, {"sequence", 1 + below(100)}, {"past", 1 + below(100)}};
    const std::set<std::string> certified = {"batch", "sequence", "past"};
    const auto fitted = policy.FitBinding(request, certified);
    ASSERT_TRUE(fitted.ok());

    const auto holds = [&](const AxisSizes& binding) {
      for (const auto& [axis, size] : request) {
        if (binding.at(axis) < size) return false;
      }
      return true;
    };
    EXPECT_TRUE(holds(*fitted));
    // No allowed bucket that holds the request is smaller than the fitted one on any axis.
    bool any = false;
    const std::vector<AxisSizes> all = policy.AllBuckets(1 << 20).value();
    for (const AxisSizes& binding : all) {
      if (!holds(binding)) continue;
      any = true;
      for (const auto& [axis, size] : *fitted) EXPECT_LE(size, binding.at(axis));
    }
    EXPECT_EQ(policy.IsBucket(*fitted, certified), any);
    if (!any) {
      EXPECT_EQ(*fitted, request);
    }
  }
}

TEST(BucketLabelTest, NamesTheBucketedAxes) {
  EXPECT_EQ(BucketLabel(Sizes(8, 128), "batch"), "b8_s128");
  EXPECT_EQ(BucketLabel({{"N", 8}, {"L", 128}}, "N"), "b8_s128");
  EXPECT_EQ(BucketLabel({{"batch", 8}}, "batch"), "b8");
  EXPECT_EQ(BucketLabel({{"sequence", 64}}, "batch"), "s64");
  EXPECT_EQ(BucketLabel({{"batch", 8}, {"past", 64}, {"sequence", 16}}, "batch"),
            "b8_past_64_sequence_16");
  EXPECT_EQ(BucketLabel({}, "batch"), "exact");
  // Some axes of the model have no buckets; rows alone are no padding.
  EXPECT_EQ(RecipeLabel({}, 2, "batch"), "exact");
  EXPECT_EQ(RecipeLabel({{"sequence", 16}}, 2, "batch"), "s16");
  EXPECT_EQ(RecipeLabel({{"batch", 8}}, 2, "batch"), "exact");
  EXPECT_EQ(RecipeLabel({{"batch", 8}}, 1, "batch"), "b8");
  EXPECT_EQ(RecipeLabel({{"batch", 8}, {"height", 64}}, 3, "batch"), "b8_s64");
}

}  // namespace
}  // namespace reprise
