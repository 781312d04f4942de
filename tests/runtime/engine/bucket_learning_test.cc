// Buckets that follow the traffic: when they change, and the effect on requests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <random>
#include <thread>

#include "tests/testing/engine_fixture.h"
#include "tests/testing/masked_mean.h"
#include "tests/testing/time_units.h"

namespace reprise {
namespace {

using testing::ElementsAre;
using testing::IsSupersetOf;

// Every look at the clock takes `step_ns`: a replay takes as long as the test says.
class SteppingClock final : public Clock {
 public:
  int64_t NowNs() const override { return now_ns_ += step_ns_; }
  void SetStepNs(int64_t ns) { step_ns_ = ns; }
  void AdvanceNs(int64_t ns) { now_ns_ += ns; }

 private:
  mutable std::atomic<int64_t> now_ns_{0};
  std::atomic<int64_t> step_ns_{0};
};

class BucketLearningTest : public testing::Test {
 protected:
  BucketLearningTest()
      : cores_(1),
        captures_({.urgent_threads = 1, .behind_threads = 1, .behind_nice = 0}),
        engine_({.device = &device_, .clock = &clock_, .cores = &cores_, .captures = &captures_},
                observer_),
        stream_(*Stream::Create({.cores = &cores_})) {}
  ~BucketLearningTest() override { captures_.Stop(); }

  std::shared_ptr<Model> Load(ModelOptions options = {}) {
    return LoadBytes(engine_, MaskedMeanModel(), std::move(options));
  }

  // Serves a request as the server does; counts those that had to wait. 100 requests a second.
  Response Serve(const Model& model, int64_t rows, int64_t length) {
    clock_.AdvanceNs(10 * kMs);
    // A replay takes 20 us a token of its bucket.
    clock_.SetStepNs(20'000 * rows * model.buckets()->Fit("sequence", length).value_or(length));
    const MeanRequest tokens(rows, length);
    const Request* request = &tokens.request;
    while (true) {
      BatchPlan plan(model);
      EXPECT_TRUE(plan.TryAdd(*model.Measure(tokens.request)));
      std::promise<absl::Status> ready;
      if (engine_.Prepare(plan, [&](absl::Status s) { ready.set_value(s); }) == nullptr) {
        return std::move(engine_.Run(plan, {&request, 1}, *stream_)[0]);
      }
      ++waited_;
      EXPECT_TRUE(ready.get_future().get().ok());
    }
  }

  // Requests one after another; none comes while a change is under way or a recipe is captured in
  // the background, which here is a matter of real time: a larger recipe that serves meanwhile
  // would be thought as fast as the one that the test speaks of.
  void ServeMany(const Model& model, int64_t count, const std::function<int64_t()>& length) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t one = length();
      const Response response = Serve(model, 1, one);
      ASSERT_TRUE(response.status.ok()) << response.status;
      while (model.learner().looking() || captures_.captures()) std::this_thread::yield();
    }
  }

  std::function<int64_t()> Lumps(std::vector<int64_t> lumps) {
    return [this, lumps] {
      return lumps[random_() % lumps.size()] - static_cast<int64_t>(random_() % 3);
    };
  }

  static std::vector<int64_t> Lengths(const Model& model) {
    const auto buckets = model.buckets();
    for (const AxisBuckets& axis : buckets->axes) {
      if (axis.axis == "sequence") return axis.sizes;
    }
    return {};
  }

  // Adopts these lengths, as if a look at the traffic had found them.
  static void Adopt(const Model& model, std::vector<int64_t> lengths) {
    BucketLearner::Found found = {.policy = *model.buckets()};
    for (AxisBuckets& axis : found.policy.axes) {
      if (axis.axis == "sequence") axis.sizes = lengths;
    }
    found.advice.boundaries = {lengths};
    model.learner().Adopt(found);
  }

  SteppingClock clock_;
  HelperPool cores_;
  CpuDevice device_{DetectIsa()};
  RememberingObserver observer_;
  CapturePool captures_;
  Engine engine_;
  std::unique_ptr<Stream> stream_;
  std::mt19937_64 random_{7};
  int64_t waited_ = 0;
};

TEST_F(BucketLearningTest, BucketsFollowTheTrafficAndNoRequestWaitsForThat) {
  const auto model = Load();
  Serve(*model, 1, 512);  // waits for the first recipe, which serves all that follow
  EXPECT_EQ(waited_, 1);
  ServeMany(*model, 1000, Lumps({40, 70, 140}));
  EXPECT_THAT(Lengths(*model), IsSupersetOf({40, 70, 140, 512}));
  EXPECT_EQ(waited_, 1);
  const Response response = Serve(*model, 1, 70);
  EXPECT_EQ(response.info.bucket, "b1_s70");
  EXPECT_EQ(response.info.capture, CaptureOutcome::kReplayed);
  // A batch that came by no such way yet needs no capture either.
  EXPECT_NE(Serve(*model, 8, 70).info.capture, CaptureOutcome::kCaptured);
  EXPECT_EQ(waited_, 1);
  const BucketReport report = model->learner().Report();
  EXPECT_EQ(report.state.changes, 1);
  EXPECT_LT(report.state.expected_waste, 0.05);
  EXPECT_FALSE(observer_.of("mean").buckets.empty());
  EXPECT_THAT(observer_.of("mean").compiles, testing::Contains("b1_s70 bucket_change"));
}

TEST_F(BucketLearningTest, StationaryTrafficChangesNothingInAnHourOnceItWasLearnt) {
  const auto model = Load();
  const auto traffic = Lumps({17, 33, 66, 130, 257, 400});
  ServeMany(*model, 2000, traffic);
  const std::vector<int64_t> learnt = Lengths(*model);
  EXPECT_THAT(learnt, IsSupersetOf({17, 33, 66, 130, 257, 400}));
  const size_t compiles = observer_.of("mean").compiles.size();
  // 100 a second; one of ten is really served, and looks see those only.
  const int64_t until_ns = clock_.NowNs() + int64_t{3600} * 1000 * kMs;
  while (clock_.NowNs() < until_ns) {
    clock_.AdvanceNs(90 * kMs);
    ServeMany(*model, 1, traffic);
  }
  EXPECT_EQ(Lengths(*model), learnt);
  EXPECT_EQ(observer_.of("mean").compiles.size(), compiles);
}

TEST_F(BucketLearningTest, DriftIsFollowedWithinAThousandRequests) {
  const auto model = Load();
  Serve(*model, 1, 512);
  ServeMany(*model, 2000, Lumps({20, 45, 90}));
  ServeMany(*model, 1000, Lumps({33, 150, 270, 420}));
  EXPECT_THAT(Lengths(*model), IsSupersetOf({33, 150, 270, 420, 512}));
  EXPECT_EQ(waited_, 1);
}

TEST_F(BucketLearningTest, PlansEndOnTheSetThatTheyBeganWith) {
  const auto model = Load({.capture = CapturePolicy::kInline});
  const MeanRequest tokens(1, 60);
  const Request* request = &tokens.request;
  BatchPlan plan(*model);
  ASSERT_TRUE(plan.TryAdd(*model->Measure(tokens.request)));
  Adopt(*model, {60, 512});
  EXPECT_EQ(engine_.Run(plan, {&request, 1}, *stream_)[0].info.bucket, "b1_s64");
  EXPECT_EQ(Serve(*model, 1, 60).info.bucket, "b1_s60");
}

TEST_F(BucketLearningTest, RowsThatWereAdmittedFitAlsoWhereTheNewSetHoldsFewer) {
  const auto model = Load();
  const MeanRequest tokens(32, 100);
  const RequestShape shape = *model->Measure(tokens.request);
  EXPECT_EQ(model->MaxRows(shape), 32);  // 32 rows of 128 are 4096 tokens
  Adopt(*model, {140, 512});
  EXPECT_EQ(model->MaxRows(shape), 32);
  BatchPlan plan(*model);
  ASSERT_TRUE(plan.TryAdd(shape));
  const Request* request = &tokens.request;
  EXPECT_EQ(engine_.Run(plan, {&request, 1}, *stream_)[0].info.bucket, "b32_s128");
  EXPECT_EQ(model->MaxRows(*model->Measure(tokens.request)), 16);
}

TEST_F(BucketLearningTest, SuggestedBucketsAreShownAndNothingChanges) {
  const auto model = Load({.bucket_mode = BucketMode::kSuggest});
  const std::vector<int64_t> before = Lengths(*model);
  ServeMany(*model, 1000, Lumps({40, 70, 140}));
  EXPECT_EQ(Lengths(*model), before);
  const BucketReport report = model->learner().Report();
  ASSERT_TRUE(report.suggestion.has_value());
  EXPECT_THAT(report.suggestion->boundaries[0], IsSupersetOf({40, 70, 140}));
  EXPECT_GT(report.suggestion->saving, 0.2);
}

TEST_F(BucketLearningTest, FrozenModelCapturesNothingForBetterBuckets) {
  const auto model = Load({.frozen = true});
  std::promise<absl::Status> ready;
  engine_.CaptureAhead(*model, {{"batch", 1}, {"sequence", 512}}, CompileReason::kWarmup,
                       CaptureUrgency::kUrgent, [&](absl::Status s) { ready.set_value(s); });
  ASSERT_TRUE(ready.get_future().get().ok());
  ServeMany(*model, 1000, Lumps({40, 70, 140}));
  EXPECT_THAT(observer_.of("mean").compiles, ElementsAre("b1_s512 warmup"));
  EXPECT_TRUE(model->learner().Report().suggestion.has_value());
}

TEST_F(BucketLearningTest, ConfiguredBucketsStay) {
  const auto model = Load({.buckets = {{"sequence", {64, 512}}}});
  ServeMany(*model, 1000, Lumps({40, 70, 140}));
  EXPECT_THAT(Lengths(*model), ElementsAre(64, 512));
  EXPECT_EQ(model->learner().Report().mode, BucketMode::kOff);
}

TEST_F(BucketLearningTest, PercentilesAreThoseOfTheTraffic) {
  const auto model = Load(
      {.learnt_buckets = {{"sequence", {.kind = BoundaryRule::Kind::kPercentile, .most = 2}}}});
  int64_t next = 0;
  ServeMany(*model, 1000, [&] { return ++next % 2 == 0 ? 40 : 70; });
  EXPECT_THAT(Lengths(*model), ElementsAre(40, 70, 512));
}

TEST_F(BucketLearningTest, RecipesOfTheSetBeforeTheLastOneLeaveTheCache) {
  const auto model = Load();
  Serve(*model, 1, 60);
  ASSERT_TRUE(model->buckets()->Fit("sequence", 60) == 64);
  Adopt(*model, {60, 512});
  engine_.RetireRecipes(*model);
  EXPECT_EQ(engine_.ListRecipes().size(), 1u);
  Adopt(*model, {62, 512});
  engine_.RetireRecipes(*model);
  EXPECT_TRUE(engine_.ListRecipes().empty());
  EXPECT_THAT(observer_.of("mean").evictions, ElementsAre(EvictionReason::kRetired));
}

}  // namespace
}  // namespace reprise
