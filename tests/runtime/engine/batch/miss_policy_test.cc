// Requests whose recipe is not ready: how they are answered, and which recipes are captured in the
// background.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "tests/runtime/engine/batch/held_lane.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/masked_mean.h"

namespace reprise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class MissPolicyTest : public testing::Test {
 protected:
  MissPolicyTest()
      : cores_(1),
        captures_({.urgent_threads = 1, .behind_threads = 1}),
        engine_({.device = &device_,
                 .clock = &clock_,
                 .cores = &cores_,
                 .captures = &captures_,
                 .on_capture =
                     [this](const MissRecord& record) {
                       MutexLock lock(mutex_);
                       captured_.push_back(record.bucket);
                       changed_.NotifyAll();
                     }},
                observer_) {
    stream_ = *Stream::Create({.cores = &cores_});
  }
  ~MissPolicyTest() override { captures_.Stop(); }

  std::shared_ptr<Model> Load(ModelOptions options = {}) {
    options.bucket_mode = BucketMode::kOff;
    return LoadBytes(engine_, MaskedMeanModel(), std::move(options));
  }

  Response Run(const Model& model, int64_t rows, int64_t length,
               OnMiss on_miss = OnMiss::kDefault) {
    const MeanRequest tokens(rows, length);
    BatchPlan plan(model);
    EXPECT_TRUE(plan.TryAdd(Shape(model, tokens, on_miss)));
    const Request* request = &tokens.request;
    return std::move(engine_.Run(plan, {&request, 1}, *stream_)[0]);
  }

  // Runs as the server does: prepared, held back while its recipe is captured, then run.
  Response RunPrepared(const Model& model, int64_t rows, int64_t length,
                       OnMiss on_miss = OnMiss::kDefault) {
    const MeanRequest tokens(rows, length);
    const Request* request = &tokens.request;
    std::shared_ptr<CaptureTicket> ticket;
    while (true) {
      BatchPlan plan(model);
      EXPECT_TRUE(plan.TryAdd(Shape(model, tokens, on_miss), ticket));
      std::promise<absl::Status> ready;
      const auto next = engine_.Prepare(plan, [&](absl::Status s) { ready.set_value(s); });
      if (next == nullptr) return std::move(engine_.Run(plan, {&request, 1}, *stream_)[0]);
      const absl::Status status = ready.get_future().get();
      if (!status.ok()) return {.status = status};
      ticket = next;
    }
  }

  static RequestShape Shape(const Model& model, const MeanRequest& tokens,
                            OnMiss on_miss = OnMiss::kDefault) {
    RequestShape shape = *model.Measure(tokens.request);
    shape.on_miss = on_miss;
    shape.id = "r1";
    return shape;
  }

  void WaitForCaptures(size_t count) {
    MutexLock lock(mutex_);
    while (captured_.size() < count) changed_.Wait(mutex_);
  }

  SteadyClock clock_;
  HelperPool cores_;
  CpuDevice device_{DetectIsa()};
  RememberingObserver observer_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> captured_ GUARDED_BY(mutex_);
  CapturePool captures_;
  Engine engine_;
  std::unique_ptr<Stream> stream_;
};

TEST_F(MissPolicyTest, LargerReadyRecipeServesAndTheOwnBucketFollowsBehind) {
  const auto model = Load();
  EXPECT_EQ(RunPrepared(*model, 1, 500).info.capture, CaptureOutcome::kCaptured);
  const Response first = RunPrepared(*model, 1, 10);
  ASSERT_TRUE(first.status.ok()) << first.status;
  EXPECT_EQ(first.info.capture, CaptureOutcome::kLarger);
  EXPECT_EQ(first.info.bucket, "b1_s512");
  // The model is tiny: it takes some requests until a capture pays.
  while (engine_.misses().last_sequence() < 2) {
    ASSERT_NE(RunPrepared(*model, 1, 10).info.capture, CaptureOutcome::kWaited);
  }
  const Response own = RunPrepared(*model, 1, 10);
  EXPECT_EQ(own.info.capture, CaptureOutcome::kReplayed);
  EXPECT_EQ(own.info.bucket, "b1_s16");
  EXPECT_EQ(own.outputs[0].bytes, first.outputs[0].bytes);
  EXPECT_THAT(observer_.of("mean").compiles,
              ElementsAre("b1_s512 first_request", "b1_s16 new_shape"));
}

TEST_F(MissPolicyTest, MoreRowsThanNeededCostNothingSoNothingIsCapturedForThem) {
  const auto model = Load();
  ASSERT_TRUE(RunPrepared(*model, 32, 16).status.ok());
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(RunPrepared(*model, 1, 16).info.capture, CaptureOutcome::kLarger);
  }
  while (captures_.queued() > 0) std::this_thread::yield();  // a look at the traffic may wait there
  EXPECT_EQ(engine_.misses().last_sequence(), 1);
}

TEST_F(MissPolicyTest, InlinePolicyCapturesEveryBucketOnDemand) {
  const auto model = Load({.capture = CapturePolicy::kInline});
  ASSERT_TRUE(RunPrepared(*model, 1, 500).status.ok());
  const Response response = RunPrepared(*model, 1, 10);
  EXPECT_EQ(response.info.capture, CaptureOutcome::kCaptured);
  EXPECT_EQ(response.info.bucket, "b1_s16");
}

TEST_F(MissPolicyTest, BackgroundPolicyRunsEagerlyAndCapturesBehind) {
  const auto model = Load({.capture = CapturePolicy::kBackground});
  const Response first = RunPrepared(*model, 1, 10);
  ASSERT_TRUE(first.status.ok()) << first.status;
  EXPECT_EQ(first.info.capture, CaptureOutcome::kEager);
  EXPECT_EQ(first.info.bucket, "exact");
  WaitForCaptures(1);
  const Response second = RunPrepared(*model, 1, 10);
  EXPECT_EQ(second.info.capture, CaptureOutcome::kReplayed);
  EXPECT_EQ(second.outputs[0].bytes, first.outputs[0].bytes);
}

TEST_F(MissPolicyTest, BatchStaysWithinWhatIsReadyAndTheLargerOneIsCapturedBehind) {
  const auto model = Load();
  ASSERT_TRUE(RunPrepared(*model, 1, 16).status.ok());
  const MeanRequest tokens(1, 16);
  for (int i = 0; engine_.misses().last_sequence() < 2; ++i) {
    BatchPlan plan(*model);
    ASSERT_TRUE(plan.TryAdd(Shape(*model, tokens)));
    for (int mate = 0; mate < 7; ++mate) {
      if (!plan.TryAdd(Shape(*model, tokens))) continue;
      // Only once the background capture has landed.
      ASSERT_GT(i, 0);
    }
    ASSERT_EQ(engine_.Prepare(plan, [](absl::Status) {}), nullptr);
    const std::vector<const Request*> requests(plan.rows(), &tokens.request);
    for (const Response& response : engine_.Run(plan, requests, *stream_)) {
      ASSERT_TRUE(response.status.ok());
    }
  }
  WaitForCaptures(2);
  EXPECT_THAT(observer_.of("mean").compiles,
              ElementsAre("b1_s16 first_request", "b8_s16 new_shape"));
}

TEST_F(MissPolicyTest, OneCaptureServesAllWhoWaitAndOneOfThemSaysSo) {
  const auto model = Load();
  HeldLane urgent(captures_, CaptureUrgency::kUrgent);
  const MeanRequest tokens(1, 100), shorter(1, 20);
  std::vector<std::shared_ptr<CaptureTicket>> tickets;
  std::vector<std::promise<absl::Status>> ready(64);
  for (int i = 0; i < 64; ++i) {
    BatchPlan plan(*model);
    // A shorter one joins the capture that will serve it.
    ASSERT_TRUE(plan.TryAdd(Shape(*model, i % 2 == 0 ? tokens : shorter)));
    tickets.push_back(
        engine_.Prepare(plan, [&ready, i](absl::Status s) { ready[i].set_value(s); }));
    ASSERT_NE(tickets.back(), nullptr);
  }
  urgent.Release();
  int captured = 0, waited = 0;
  for (int i = 0; i < 64; ++i) {
    ASSERT_TRUE(ready[i].get_future().get().ok());
    const MeanRequest& sent = i % 2 == 0 ? tokens : shorter;
    BatchPlan plan(*model);
    ASSERT_TRUE(plan.TryAdd(Shape(*model, sent), tickets[i]));
    ASSERT_EQ(engine_.Prepare(plan, [](absl::Status) {}), nullptr);
    const Request* request = &sent.request;
    const Response response = std::move(engine_.Run(plan, {&request, 1}, *stream_)[0]);
    ASSERT_TRUE(response.status.ok()) << response.status;
    captured += response.info.capture == CaptureOutcome::kCaptured;
    waited += response.info.capture == CaptureOutcome::kWaited;
  }
  EXPECT_EQ(captured, 1);
  EXPECT_EQ(waited, 63);
  EXPECT_EQ(observer_.of("mean").compiles[0], "b1_s128 first_request");
  const std::vector<MissRecord> records = engine_.misses().Since(0);
  EXPECT_EQ(records[0].num_waiters, 64);
  EXPECT_EQ(records[0].waiters.size(), MissRecord::kMaxWaiters);
  EXPECT_EQ(records[0].waiters[0].request_id, "r1");
}

TEST_F(MissPolicyTest, CaptureThatWaitsBehindBecomesUrgentWhenARequestNeedsIt) {
  const auto model = Load();
  HeldLane behind(captures_, CaptureUrgency::kBehind);
  std::promise<absl::Status> warmed;
  engine_.CaptureAhead(*model, {{"batch", 1}, {"sequence", 64}}, CompileReason::kWarmup,
                       CaptureUrgency::kBehind, [&](absl::Status s) { warmed.set_value(s); });
  // The background thread is held: only the urgent one can do it.
  EXPECT_EQ(RunPrepared(*model, 1, 60).info.bucket, "b1_s64");
  behind.Release();
  EXPECT_TRUE(warmed.get_future().get().ok());
  EXPECT_THAT(observer_.of("mean").compiles, ElementsAre("b1_s64 warmup"));
}

TEST_F(MissPolicyTest, StoppedPoolFailsThoseWhoWait) {
  const auto model = Load();
  HeldLane urgent(captures_, CaptureUrgency::kUrgent);
  const MeanRequest tokens(1, 100);
  BatchPlan plan(*model);
  ASSERT_TRUE(plan.TryAdd(Shape(*model, tokens)));
  std::promise<absl::Status> ready;
  ASSERT_NE(engine_.Prepare(plan, [&](absl::Status s) { ready.set_value(s); }), nullptr);
  std::thread stopping([&] { captures_.Stop(); });
  urgent.Release();
  stopping.join();
  // Whichever came first: the job's turn or the end.
  const absl::Status status = ready.get_future().get();
  EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << status;
}

TEST_F(MissPolicyTest, FrozenModelServesWhatIsReadyAndNamesTheNearestForTheRest) {
  const auto model = Load({.frozen = true});
  std::promise<absl::Status> warmed;
  engine_.CaptureAhead(*model, {{"batch", 2}, {"sequence", 64}}, CompileReason::kWarmup,
                       CaptureUrgency::kBehind, [&](absl::Status s) { warmed.set_value(s); });
  ASSERT_TRUE(warmed.get_future().get().ok());
  EXPECT_EQ(RunPrepared(*model, 1, 10).info.capture, CaptureOutcome::kLarger);
  EXPECT_EQ(RunPrepared(*model, 2, 60).info.capture, CaptureOutcome::kReplayed);
  for (const OnMiss on_miss : {OnMiss::kDefault, OnMiss::kPad, OnMiss::kWait, OnMiss::kReject}) {
    const Response refused = RunPrepared(*model, 4, 100, on_miss);
    EXPECT_TRUE(absl::IsFailedPrecondition(refused.status)) << refused.status;
    EXPECT_THAT(std::string(refused.status.message()),
                testing::AllOf(HasSubstr("b4_s128"), HasSubstr("frozen"), HasSubstr("b2_s64")));
  }
  EXPECT_EQ(RunPrepared(*model, 4, 100, OnMiss::kEager).info.capture, CaptureOutcome::kEager);
  EXPECT_TRUE(absl::IsFailedPrecondition(Run(*model, 4, 100).status));  // nor unprepared
  EXPECT_THAT(observer_.of("mean").compiles, ElementsAre("b2_s64 warmup"));
}

TEST_F(MissPolicyTest, RequestMayChooseWhatAMissDoes) {
  const auto model = Load();
  EXPECT_TRUE(absl::IsFailedPrecondition(RunPrepared(*model, 1, 500, OnMiss::kReject).status));
  EXPECT_TRUE(absl::IsFailedPrecondition(RunPrepared(*model, 1, 500, OnMiss::kPad).status));
  EXPECT_EQ(RunPrepared(*model, 1, 500, OnMiss::kEager).info.capture, CaptureOutcome::kEager);
  EXPECT_EQ(RunPrepared(*model, 1, 500, OnMiss::kWait).info.capture, CaptureOutcome::kCaptured);
  EXPECT_EQ(RunPrepared(*model, 1, 10, OnMiss::kPad).info.capture, CaptureOutcome::kLarger);
  EXPECT_TRUE(absl::IsFailedPrecondition(RunPrepared(*model, 1, 10, OnMiss::kReject).status));
  EXPECT_EQ(RunPrepared(*model, 1, 10, OnMiss::kWait).info.capture, CaptureOutcome::kCaptured);
  EXPECT_EQ(RunPrepared(*model, 1, 10, OnMiss::kReject).info.capture, CaptureOutcome::kReplayed);
}

TEST_F(MissPolicyTest, ReportNamesTheNearestRecipeTheDifferenceAndTheRemedy) {
  const auto model = Load({.buckets = {{"sequence", BucketPolicy::DefaultPositions()}}});
  ASSERT_TRUE(RunPrepared(*model, 1, 60).status.ok());
  ASSERT_TRUE(RunPrepared(*model, 1, 100).status.ok());
  ASSERT_TRUE(RunPrepared(*model, 1, 700).status.ok());
  const std::vector<MissRecord> records = engine_.misses().Since(0, "mean");
  ASSERT_EQ(records.size(), 3);
  EXPECT_EQ(records[0].nearest, "");
  EXPECT_EQ(records[1].bucket, "b1_s128");
  EXPECT_EQ(records[1].nearest, "b1_s64");
  ASSERT_EQ(records[1].differences.size(), 1);
  EXPECT_EQ(records[1].differences[0].field, "sequence");
  EXPECT_EQ(records[1].differences[0].wanted, "128");
  EXPECT_EQ(records[1].differences[0].had, "64");
  EXPECT_EQ(records[1].suggestion, "reprise.warmup: \"b1_s128\"");
  EXPECT_EQ(records[1].num_waiters, 1);
  EXPECT_GT(records[1].longest_wait_ns, 0);
  EXPECT_GT(records[1].frame_bytes, 0);
  EXPECT_EQ(records[2].bucket, "exact");
  EXPECT_EQ(
      records[2].suggestion,
      "reprise.sequence_buckets: \"16,32,64,128,256,512,1024\" and reprise.warmup: \"b1_s1024\"");
  EXPECT_TRUE(engine_.misses().Since(0, "other").empty());
  EXPECT_EQ(engine_.misses().Since(records[1].sequence).size(), 1);
  const std::string text = MissText(records[1]);
  EXPECT_THAT(text, testing::AllOf(HasSubstr("nearest was b1_s64"),
                                   HasSubstr("sequence 64, not 128"), HasSubstr("reprise.warmup")));
}

TEST_F(MissPolicyTest, ReportOfABucketThatOpenedSaysHowToHaveItReady) {
  const auto suggestion = [&](const std::string& warmup, int64_t length) {
    const auto model = Load({.warmup = {warmup}});
    EXPECT_TRUE(RunPrepared(*model, 1, length).status.ok());
    const MissRecord record = engine_.misses().Since(0, "mean").back();
    EXPECT_NE(record.bucket, "exact");
    return record.suggestion;
  };
  EXPECT_EQ(suggestion("b1_s16", 700), "reprise.warmup: \"b1_s16,b1_s800\"");
  // "all" is no list.
  EXPECT_EQ(suggestion("all", 900), "reprise.sequence_buckets: \"16,32,64,128,256,512,992\"");
}

TEST_F(MissPolicyTest, EngineWithoutCaptureThreadsCapturesOnTheCallersThread) {
  const auto model = Load();
  EXPECT_EQ(Run(*model, 1, 100).info.capture, CaptureOutcome::kCaptured);
  EXPECT_EQ(Run(*model, 1, 10).info.capture, CaptureOutcome::kLarger);
  EXPECT_EQ(Run(*model, 1, 100).info.capture, CaptureOutcome::kReplayed);
}

TEST(CapturePoolTest, JobsThatWaitWhenThePoolStopsAreToldSo) {
  CapturePool pool({.urgent_threads = 0, .behind_threads = 0, .max_queued_behind = 1});
  std::vector<Stream*> given = {reinterpret_cast<Stream*>(1)};
  EXPECT_TRUE(pool.Add(CaptureUrgency::kBehind, [&](Stream* stream) { given[0] = stream; }));
  EXPECT_FALSE(pool.Add(CaptureUrgency::kBehind, [](Stream*) {}));
  EXPECT_EQ(pool.queued(), 1);
  pool.Stop();
  EXPECT_EQ(given[0], nullptr);
  EXPECT_FALSE(pool.Add(CaptureUrgency::kUrgent, [](Stream*) {}));
}

TEST(MissedRecipeCostsTest, CaptureIsAskedForOnceWhenWhatWasLostPaysForIt) {
  MissedRecipeCosts wishes;
  RecipeKey key;
  key.hash = 7;
  constexpr int64_t kCapture = 1000 * MissedRecipeCosts::kExpectedRepeats;
  EXPECT_FALSE(wishes.Note(key, 0, kCapture, 1));
  EXPECT_FALSE(wishes.Note(key, 600, kCapture, 1));
  EXPECT_TRUE(wishes.Note(key, 600, kCapture, 1));
  EXPECT_FALSE(wishes.Note(key, 600, kCapture, 1));
  wishes.Forget(key);
  EXPECT_FALSE(wishes.Note(key, 5000, kCapture, 2));
  EXPECT_TRUE(wishes.Note(key, 1, kCapture, 2));
}

}  // namespace
}  // namespace reprise
