// Which buckets a warm-up names.
#include "server/repository/warmup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"
#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class WarmupTest : public testing::Test {
 protected:
  void Load(int axes) {
    const auto model = fixture_.engine.Load(
        {.id = {"many", 1}, .path = folder_.Write("many.onnx", ManyLengths(axes).Bytes())});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *model;
  }

  const TempFolder folder_;
  EngineFixture fixture_;
  std::shared_ptr<Model> model_;
};

TEST_F(WarmupTest, AllBucketsOfAFewAxes) {
  Load(4);
  const auto all = BindingsOf(*model_, {});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->size(), 6u * 6 * 6 * 6);
}

TEST_F(WarmupTest, BucketsOfManyAxesByNameAlone) {
  Load(13);
  const auto all = BindingsOf(*model_, {});
  EXPECT_EQ(all.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(all.status().message()),
              AllOf(HasSubstr("'many'"), HasSubstr("len_0 6, len_1 6"), HasSubstr("multiply")));
  AxisSizes sizes;
  for (int i = 0; i < 13; ++i) sizes[absl::StrCat("len_", i)] = 32;
  const std::string label = model_->LabelOfBucket(sizes);
  const auto one = BindingsOf(*model_, {label});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(*one, std::vector<AxisSizes>{sizes});
  const auto none = BindingsOf(*model_, {label + "0"});
  EXPECT_THAT(std::string(none.status().message()), HasSubstr(label + "0"));
}

// Each step of a warm-up takes as long as a test says.
class WarmupTimeTest : public testing::Test {
 protected:
  static constexpr int64_t kSecond = 1'000'000'000;

  WarmupTimeTest() {
    const auto model = engine_.Load(
        {.id = {"many", 1}, .path = folder_.Write("many.onnx", ManyLengths(1).Bytes())});
    EXPECT_TRUE(model.ok()) << model.status();
    bindings_ = *BindingsOf(**model, {});
    progress_ = std::make_shared<WarmupProgress>(
        [this](const WarmupProgress::State&) { clock_.AdvanceNs(step_ns_); });
    warmup_ = std::make_shared<Warmup>(engine_, *model, WarmupSettings{.max_seconds = 300},
                                       progress_, state_);
  }

  const TempFolder folder_;
  FakeClock clock_;
  int64_t step_ns_ = 0;
  HelperPool cores_{1};
  CpuDevice device_{DetectIsa()};
  RememberingObserver observer_;
  Engine engine_{{.device = &device_, .clock = &clock_, .cores = &cores_}, observer_};
  ServerState state_;
  std::vector<AxisSizes> bindings_;
  std::shared_ptr<WarmupProgress> progress_;
  std::shared_ptr<Warmup> warmup_;
};

TEST_F(WarmupTimeTest, LimitOfTimeCountsFromTheRequestAndNotFromTheLoad) {
  clock_.AdvanceNs(400 * kSecond);
  warmup_->Request(bindings_);
  EXPECT_EQ(progress_->state().stopped, "");
  EXPECT_EQ(progress_->state().wanted, static_cast<int64_t>(bindings_.size()));
  EXPECT_EQ(progress_->state().done + progress_->state().failed, progress_->state().wanted);
}

TEST_F(WarmupTimeTest, WarmupThatTookTooLongIsEndedAndCanBeAskedForAgain) {
  ASSERT_GT(bindings_.size(), 3);
  step_ns_ = 200 * kSecond;
  warmup_->RunUntilReady({}, bindings_, {});
  EXPECT_THAT(progress_->state().stopped, HasSubstr("300 s are over"));
  step_ns_ = 0;
  for (int i = 0; i < 2; ++i) {
    warmup_->Request(bindings_);
    const WarmupProgress::State state = progress_->state();
    EXPECT_EQ(state.stopped, "");
    EXPECT_EQ(state.wanted, static_cast<int64_t>(bindings_.size())) << "each counts once";
    EXPECT_TRUE(state.finished());
  }
}

}  // namespace
}  // namespace reprise
