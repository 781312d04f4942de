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

// Doubles values of the arena in place.
void DoubleInPlace(const LaunchArgs& args) { *static_cast<float*>(args.operands[1]) *= 2; }

TEST(RunLaunchTest, EveryRunBeginsWithWhatEarlierLaunchesLeft) {
  Recipe recipe;
  for (int i = 0; i < 3; ++i) {
    Launch& launch = recipe.launches.emplace_back();
    launch.run = DoubleInPlace;
    launch.operands = {{Space::kArena, 0}, {Space::kArena, 0}, {}};
    recipe.operand_notes.push_back({{OperandNote::Role::kInput, DType::kFloat32, sizeof(float)},
                                    {OperandNote::Role::kOutput, DType::kFloat32, sizeof(float)},
                                    {OperandNote::Role::kOutput}});
  }
  float arena = 3;
  Frame frame;
  frame.arena = reinterpret_cast<std::byte*>(&arena);
  const auto run = RunLaunch(recipe, frame, /*launch=*/1, /*repeats=*/4, TickingClock());
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->ns, (std::vector<int64_t>{1000, 1000, 1000, 1000}));
  ASSERT_EQ(run->outputs.size(), 2u);
  EXPECT_EQ(arena, 3 * 2 * 2);
  EXPECT_EQ(run->outputs[0], std::string(reinterpret_cast<const char*>(&arena), sizeof(arena)));
  EXPECT_EQ(run->outputs[1], "");
  for (const int launch : {-1, 3}) {
    EXPECT_EQ(RunLaunch(recipe, frame, launch, 1, TickingClock()).status().code(),
              absl::StatusCode::kOutOfRange);
  }
}

}  // namespace
}  // namespace reprise
