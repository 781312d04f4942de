#include "runtime/engine/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "runtime/base/clock.h"

namespace reprise {
namespace {

using testing::ContainsRegex;

constexpr Roofline kMachine = {
    .gflops = 100, .gexps = 2, .gerfs = 1, .weight_gbytes = 10, .other_gbytes = 50};

// Moves on by itself: 1000 ns at each look.
class TickingClock final : public Clock {
 public:
  int64_t NowNs() const override { return now_ += 1000; }

 private:
  mutable int64_t now_ = 0;
};

TEST(LaunchFloorTest, TheSlowerOfComputingAndMovingBytesCounts) {
  EXPECT_DOUBLE_EQ(FloorOf({.flops = 1000, .bytes = 100}, kMachine).ns(), 10);
  EXPECT_DOUBLE_EQ(FloorOf({.flops = 1000, .exps = 20, .erfs = 30}, kMachine).ns(), 50);
  // 900 of the 1000 bytes are weights: 90 ns, and 2 for the others.
  EXPECT_DOUBLE_EQ(FloorOf({.flops = 1000, .bytes = 1000, .weight_bytes = 900}, kMachine).ns(), 92);
  EXPECT_DOUBLE_EQ(FloorOf({}, kMachine).ns(), 0);
}

TEST(ProfileTest, LaunchesAndReplaysAreTimedApart) {
  auto recipe = std::make_shared<Recipe>();
  for (const char* kernel : {"slow", "fast"}) {
    Launch& launch = recipe->launches.emplace_back();
    launch.kernel = kernel;
    launch.detail = "[2, 3]";
    launch.run = [](const LaunchArgs&) {};
  }
  recipe->launches[0].work = {.flops = 50'000};
  recipe->launches[1].work = {.bytes = 10'000};
  int replays = 0;
  const RecipeProfile profile = ProfileRecipe(
      recipe, Frame(), [&] { ++replays; }, /*repeats=*/5, TickingClock());
  EXPECT_EQ(replays, 5);
  EXPECT_EQ(profile.launch_ns, (std::vector<int64_t>{1000, 1000}));
  EXPECT_EQ(profile.replay_ns, 1000);
  EXPECT_DOUBLE_EQ(FloorNs(*recipe, kMachine), 500 + 200);
  const std::string table = ProfileTable(profile, kMachine);
  EXPECT_THAT(table, ContainsRegex("0  slow +1.0  50.0% +50.0 GF/s +50 %  #+\\.+ +\\[2, 3\\]"));
  EXPECT_THAT(table, ContainsRegex("1  fast +1.0  50.0% +10.0 GB/s +20 %"));
  EXPECT_THAT(table, ContainsRegex("whole replay +2 +1.0 +0.7 +0.3 +70 %"));
}

}  // namespace
}  // namespace reprise
