// Captures that are no longer needed: the waiters are gone, the model is, or the server ends.
#include "runtime/engine/capture/captures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <thread>

#include "tests/runtime/engine/batch/held_lane.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/masked_mean.h"

namespace reprise {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr int64_t kInBucket = 100, kExact = 700;  // lengths

class CapturesTest : public testing::Test {
 protected:
  CapturesTest()
      : cores_(1),
        pool_({.urgent_threads = 1, .behind_threads = 1}),
        engine_({.device = &device_, .clock = &clock_, .cores = &cores_, .captures = &pool_},
                observer_) {
    model_ = LoadBytes(engine_, MaskedMeanModel(),
                       {.buckets = {{"sequence", {kInBucket}}}, .bucket_mode = BucketMode::kOff});
    held_.emplace(pool_, CaptureUrgency::kUrgent);
  }
  ~CapturesTest() override {
    held_.reset();
    pool_.Stop();
  }

  // A request of `length` tokens that waits for its capture, as long as it holds the ticket.
  struct Waiting {
    std::shared_ptr<CaptureTicket> ticket;
    std::promise<absl::Status> promise;
    std::future<absl::Status> status = promise.get_future();
  };
  std::unique_ptr<Waiting> Ask(int64_t length) {
    auto waiting = std::make_unique<Waiting>();
    const MeanRequest tokens(1, length);
    BatchPlan plan(*model_);
    EXPECT_TRUE(plan.TryAdd(*model_->Measure(tokens.request)));
    waiting->ticket = engine_.Prepare(
        plan, [at = waiting.get()](absl::Status status) { at->promise.set_value(status); });
    EXPECT_NE(waiting->ticket, nullptr);
    return waiting;
  }

  SteadyClock clock_;
  HelperPool cores_;
  CpuDevice device_{DetectIsa()};
  RememberingObserver observer_;
  CapturePool pool_;
  Engine engine_;
  std::shared_ptr<Model> model_;
  std::optional<HeldLane> held_;
};

TEST_F(CapturesTest, ExactShapeThatNobodyWaitsForIsNotCaptured) {
  const auto gone = Ask(kExact);
  gone->ticket.reset();
  held_->Release();
  const absl::Status status = gone->status.get();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no request waits for it"));
  EXPECT_THAT(engine_.ListRecipes(), SizeIs(0));
}

TEST_F(CapturesTest, ExactShapeIsCapturedForTheOneThatStillWaits) {
  const auto gone = Ask(kExact), stays = Ask(kExact);
  gone->ticket.reset();
  held_->Release();
  EXPECT_TRUE(stays->status.get().ok());
  EXPECT_TRUE(gone->status.get().ok());
  EXPECT_THAT(engine_.ListRecipes(), SizeIs(1));
}

TEST_F(CapturesTest, BucketIsCapturedForThoseWhoWillAskNext) {
  const auto gone = Ask(kInBucket);
  gone->ticket.reset();
  held_->Release();
  EXPECT_TRUE(gone->status.get().ok());
  EXPECT_THAT(engine_.ListRecipes(), SizeIs(1));
}

TEST_F(CapturesTest, NothingIsCapturedForAModelThatIsUnloaded) {
  const auto gone = Ask(kInBucket);
  gone->ticket.reset();
  model_->Abandon();
  held_->Release();
  const absl::Status status = gone->status.get();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("is unloaded"));
  EXPECT_THAT(engine_.ListRecipes(), SizeIs(0));
}

// The request of a model of the same graph, which was loaded in its place.
TEST_F(CapturesTest, ASuccessorOfAnUnloadedModelGetsTheCaptureThatItWaitsFor) {
  const auto waiting = Ask(kInBucket);
  model_->Abandon();
  held_->Release();
  EXPECT_TRUE(waiting->status.get().ok());
  EXPECT_THAT(engine_.ListRecipes(), SizeIs(1));
}

TEST_F(CapturesTest, WhoWaitsAtTheEndIsToldThatTheServerStops) {
  const auto waiting = Ask(kInBucket);
  auto stopped = std::async(std::launch::async, [this] { pool_.Stop(); });
  while (!pool_.stopped()) std::this_thread::yield();
  held_->Release();
  const absl::Status status = waiting->status.get();
  stopped.get();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("stopping"));
}

}  // namespace
}  // namespace reprise
