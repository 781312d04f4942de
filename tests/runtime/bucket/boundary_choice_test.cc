// Boundaries of several axes: those that multiply are solved together, many are solved one by one.
#include "runtime/bucket/boundary_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

using ::testing::Contains;
using ::testing::SizeIs;

const std::vector<int64_t> kInForce = {16, 32, 64, 128, 256, 512};

// Returns rows of `axes` axes, each of the two lengths that axis i has: 20 + i, and 100 + i.
std::vector<WeightedSizes> TwoLengthsEach(size_t axes, int count) {
  std::mt19937 random(3);
  SizeHistogram seen;
  for (int i = 0; i < count; ++i) {
    std::vector<int64_t> sizes;
    for (size_t axis = 0; axis < axes; ++axis) {
      sizes.push_back(static_cast<int64_t>(random() % 2 == 0 ? 20 + axis : 100 + axis));
    }
    seen.Add(sizes);
  }
  return seen.Snapshot();
}

struct Choice {
  explicit Choice(size_t num_axes, bool together) {
    std::vector<std::vector<size_t>> inputs;
    for (size_t i = 0; i < num_axes; ++i) {
      axes.push_back({absl::StrCat("len_", i), {}, kInForce});
      in_force.push_back(kInForce);
      inputs.push_back({i});
    }
    if (!together) measure = SizeMeasure(num_axes, inputs);
  }
  BoundarySets Solve(const std::vector<WeightedSizes>& seen) const {
    return BoundaryChoice(axes, nullptr, cost, in_force, measure).Solve(seen);
  }

  std::vector<AdvisorAxis> axes;
  BoundarySets in_force;
  SizeMeasure measure;
  ReplayCost cost;
};

// Few axes, and as many as would take hours together.
TEST(BoundaryChoiceTest, EachAxisGetsTheLengthsThatCame) {
  for (const bool together : {true, false}) {
    for (const size_t axes : {size_t{1}, size_t{2}, size_t{3}, size_t{4}, size_t{13}, size_t{30}}) {
      if (together && axes > 4) continue;  // No input has that many axes.
      const Choice choice(axes, together);
      const std::vector<WeightedSizes> seen = TwoLengthsEach(axes, 2000);
      const BoundarySets sets = choice.Solve(seen);
      ASSERT_THAT(sets, SizeIs(axes));
      for (size_t axis = 0; axis < axes; ++axis) {
        EXPECT_THAT(sets[axis], Contains(20 + axis)) << axis << " of " << axes;
        EXPECT_THAT(sets[axis], Contains(100 + axis)) << axis << " of " << axes;
        EXPECT_EQ(sets[axis].back(), 512) << axis << " of " << axes;
      }
      EXPECT_NEAR(PaddingShare({seen, choice.measure}, sets), 0, 1e-9);
      const BoundaryGain gain = GainOf({seen, choice.measure}, choice.in_force, sets, choice.cost);
      EXPECT_GT(gain.share, 0);
      EXPECT_LT(gain.share, 1);
    }
  }
}

TEST(BoundaryChoiceTest, PaddingIsThatOfTheElements) {
  const std::vector<WeightedSizes> seen = {{{10, 30}, 1}};
  const BoundarySets sets = {{16}, {32}};
  EXPECT_DOUBLE_EQ(PaddingShare({seen, SizeMeasure()}, sets), 1 - 300.0 / 512);
  EXPECT_DOUBLE_EQ(PaddingShare({seen, SizeMeasure(2, {{0}, {1}})}, sets), 1 - 40.0 / 48);
  EXPECT_EQ(PaddedElements({10, 30}, sets, SizeMeasure(2, {{0}, {1}})), 48);
}

}  // namespace
}  // namespace reprise
