#include "runtime/engine/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise {
namespace {

using testing::ElementsAre;

struct Seen {
  std::vector<int> parts;
};

void Note(const LaunchArgs& args) {
  EXPECT_EQ(args.part, 0);
  EXPECT_TRUE(args.lone_part);
  // Params are const to kernels; this one only looks at how it is called.
  const_cast<Seen*>(static_cast<const Seen*>(args.params))->parts.push_back(args.parts);
}

class StreamTest : public testing::Test {
 protected:
  void Add(double flops, DType output) {
    Launch launch;
    launch.run = Note;
    launch.params = seen_;
    launch.work.flops = flops;
    launch.operands.push_back({Space::kArena, 0});
    recipe_.launches.push_back(std::move(launch));
    recipe_.operand_notes.push_back({{OperandNote::Role::kOutput, output, 4}});
  }
  void Prime() {
    auto stream = Stream::Create({.max_arena_bytes = 64 << 20});
    ASSERT_TRUE(stream.ok());
    (*stream)->Prime(recipe_, (*stream)->MakeFrame(recipe_, nullptr, nullptr));
  }

  Recipe recipe_;
  std::shared_ptr<Seen> seen_ = std::make_shared<Seen>();
};

TEST_F(StreamTest, PrimingRunsAPartOfEachLargeLaunchAndSmallOnesWhole) {
  Add(1e3, DType::kFloat32);
  Add(8e5, DType::kFloat32);
  Add(1e12, DType::kFloat32);
  Prime();
  EXPECT_THAT(seen_->parts, ElementsAre(1, 4, 1024));
}

TEST_F(StreamTest, PrimingComputesIntegersWholeAsTheyMayBePlaces) {
  Add(1e12, DType::kInt64);
  Prime();
  EXPECT_THAT(seen_->parts, ElementsAre(1));
}

}  // namespace
}  // namespace reprise
