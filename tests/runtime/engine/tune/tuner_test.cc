// Recipes whose kernels were never timed give way to tuned ones, in the background.
#include "runtime/engine/tune/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <future>
#include <thread>

#include "tests/runtime/engine/batch/held_lane.h"
#include "tests/runtime/engine/server_start.h"
#include "tests/runtime/onnx/model_builder.h"

namespace reprise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int64_t kHidden = 24, kInner = 300;

// x [batch, sequence, 24] -> two products with weights -> y, token by token.
std::string FeedForwardModel() {
  const auto weights = [](int64_t rows, int64_t columns) {
    std::vector<float> values(rows * columns);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(static_cast<int64_t>(i * 7919 % 101) - 50) / 500;
    }
    return values;
  };
  ModelBuilder b;
  b.Input("x", {"batch", "sequence", std::to_string(kHidden)});
  b.Floats("up", {kHidden, kInner}, weights(kHidden, kInner));
  b.Floats("down", {kInner, kHidden}, weights(kInner, kHidden));
  b.Node("MatMul", {"x", "up"}, {"wide"});
  b.Node("Relu", {"wide"}, {"active"});
  b.Node("MatMul", {"active", "down"}, {"y"});
  b.Output("y");
  return b.Bytes();
}

struct FloatRequest {
  FloatRequest(int64_t rows, int64_t length) : x(rows * length * kHidden) {
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 13) / 6 - 1;
    request.inputs = {{{rows, length, kHidden}, x.data()}};
  }
  FloatRequest(const FloatRequest&) = delete;

  std::vector<float> x;
  Request request;
};

class TunerTest : public testing::Test {
 protected:
  // Begun before the engine that uses it, and ended after it.
  struct Pool {
    CapturePool captures{{.urgent_threads = 1, .behind_threads = 1, .tuning_nice = 0}};
  };
  struct Start : Pool, ServerStart {
    explicit Start(const TunerTest& test, ModelOptions options = {}, bool frozen = false)
        : ServerStart(test.folder_, {.model = WithDefaults(std::move(options)),
                                     .captures = &captures,
                                     .frozen = frozen}) {}
    static ModelOptions WithDefaults(ModelOptions options) {
      options.id = {"ffn", 1};
      options.bucket_mode = BucketMode::kOff;
      return options;
    }
    Response Run(int64_t rows, int64_t length) { return Run(rows, length, *stream); }
    Response Run(int64_t rows, int64_t length, Stream& on) {
      const FloatRequest tokens(rows, length);
      return ServerStart::Run(tokens.request, on);
    }
    // Returns when the jobs that were queued are done.
    void FinishTuning() {
      std::promise<void> done;
      ASSERT_TRUE(captures.Add(CaptureUrgency::kTuning, [&](Stream*) { done.set_value(); }));
      done.get_future().wait();
    }
  };

  static void ExpectSame(const Response& got, const Response& expected) {
    ASSERT_EQ(got.outputs[0].bytes.size(), expected.outputs[0].bytes.size());
    const size_t count = got.outputs[0].bytes.size() / sizeof(float);
    std::vector<float> a(count), b(count);
    std::memcpy(a.data(), got.outputs[0].bytes.data(), count * sizeof(float));
    std::memcpy(b.data(), expected.outputs[0].bytes.data(), count * sizeof(float));
    float largest = 0;
    for (float x : b) largest = std::max(largest, std::abs(x));
    for (size_t i = 0; i < count; ++i) ASSERT_NEAR(a[i], b[i], 1e-5 * largest) << i;
  }

  const StartFolder folder_{FeedForwardModel()};
};

TEST_F(TunerTest, CapturedRecipeGivesWayToATunedOne) {
  Start start(*this);
  const Response before = start.Run(1, 100);
  start.WaitFor("tuned recipe", 1);
  const Response after = start.Run(1, 100);
  ExpectSame(after, before);
  EXPECT_EQ(after.info.capture, CaptureOutcome::kReplayed);
  EXPECT_EQ(after.info.recipe, before.info.recipe);
  EXPECT_THAT(start.observer.of("ffn").tunes, ElementsAre("b1_s128"));
  EXPECT_THAT(start.observer.of("ffn").compiles, ElementsAre("b1_s128 first_request"));
  EXPECT_THAT(start.observer.of("ffn").replays, ElementsAre("b1_s128", "b1_s128"));
  const std::vector<CachedRecipe> recipes = start.engine->ListRecipes();
  ASSERT_THAT(recipes, SizeIs(1));
  EXPECT_EQ(recipes[0].recipe->timeable, 2);
  EXPECT_EQ(recipes[0].recipe->untimed, 0);
  EXPECT_THAT(recipes[0].recipe->note.tuning, HasSubstr("2 products timed"));
  EXPECT_EQ(recipes[0].recipe->note.reason, "first_request");
  // It is tuned: there is nothing left to do.
  start.FinishTuning();
  EXPECT_THAT(start.Logged("tuned recipe"), SizeIs(1));
}

TEST_F(TunerTest, ReplaysGoOnWhileRecipesAreExchanged) {
  Start start(*this);
  std::atomic<bool> done{false};
  std::vector<std::thread> clients;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back([&] {
      const auto stream = *Stream::Create({.cores = &start.cores});
      std::vector<Response> first;
      for (const int64_t length : {10, 20, 40, 80}) first.push_back(start.Run(1, length, *stream));
      while (!done) {
        size_t at = 0;
        for (const int64_t length : {10, 20, 40, 80}) {
          ExpectSame(start.Run(1, length, *stream), first[at++]);
        }
      }
    });
  }
  // At least the recipes of the shortest and of the longest.
  start.WaitFor("tuned recipe", 2);
  done = true;
  for (std::thread& client : clients) client.join();
}

TEST_F(TunerTest, OtherRecipeOfTheSameProductsIsBornTuned) {
  Start start(*this);
  start.Run(1, 128);
  start.WaitFor("tuned recipe", 1);
  start.Run(8, 16);
  start.FinishTuning();
  EXPECT_THAT(start.observer.of("ffn").tunes, ElementsAre("b1_s128"));
  for (const CachedRecipe& cached : start.engine->ListRecipes()) {
    EXPECT_EQ(cached.recipe->untimed, 0);
    EXPECT_NE(cached.recipe->note.tuning, "");
  }
}

TEST_F(TunerTest, NothingIsTunedThatSaysSo) {
  Start start(*this, {.tune = TuneMode::kOff});
  start.Run(1, 100);
  start.FinishTuning();
  EXPECT_THAT(start.observer.of("ffn").tunes, IsEmpty());
  EXPECT_EQ(start.engine->ListRecipes()[0].recipe->note.tuning, "");
}

TEST_F(TunerTest, NothingFrozenIsTuned) {
  for (const bool model_frozen : {false, true}) {
    Start start(*this, {.frozen = model_frozen}, /*frozen=*/!model_frozen);
    std::promise<absl::Status> warmed;
    start.engine->CaptureAhead(*start.model, {{"batch", 1}, {"sequence", 128}},
                               CompileReason::kWarmup, CaptureUrgency::kBehind,
                               [&](absl::Status status) { warmed.set_value(status); });
    ASSERT_TRUE(warmed.get_future().get().ok());
    start.Run(1, 100);
    start.FinishTuning();
    EXPECT_THAT(start.observer.of("ffn").tunes, IsEmpty());
  }
}

TEST_F(TunerTest, WarmedRecipeIsTunedBeforeItIsUsed) {
  Start start(*this);
  start.engine->CaptureAhead(*start.model, {{"batch", 1}, {"sequence", 64}}, CompileReason::kWarmup,
                             CaptureUrgency::kUrgent, [](absl::Status) {});
  start.WaitFor("tuned recipe", 1);
  EXPECT_THAT(start.observer.of("ffn").replays, IsEmpty());
}

TEST_F(TunerTest, ExactShapeIsTunedWhenItComesAgain) {
  Start start(*this, {.buckets = {{"sequence", {128}}}});
  start.Run(1, 700);
  start.FinishTuning();
  EXPECT_THAT(start.observer.of("ffn").tunes, IsEmpty());
  start.Run(1, 700);
  start.WaitFor("tuned recipe", 1);
  EXPECT_THAT(start.observer.of("ffn").tunes, ElementsAre("exact"));
}

TEST_F(TunerTest, ModelThatIsUnloadedMeanwhileIsNotTuned) {
  Start start(*this);
  HeldLane tuning(start.captures, CaptureUrgency::kTuning);
  start.Run(1, 100);
  start.model.reset();
  tuning.Release();
  start.FinishTuning();
  EXPECT_THAT(start.observer.of("ffn").tunes, IsEmpty());
}

TEST_F(TunerTest, SecondStartCapturesWithTheKernelsThatTheFirstOneTimed) {
  {
    Start first(*this);
    first.Run(1, 100);
    first.WaitFor("tuned recipe", 1);
  }
  {
    Start second(*this);
    second.Run(1, 100);
    EXPECT_THAT(second.Logged("loaded recipe"), SizeIs(1));
    second.FinishTuning();
    EXPECT_THAT(second.observer.of("ffn").tunes, IsEmpty());
  }
  std::filesystem::remove(folder_.Files("recipe").at(0));
  Start third(*this);
  third.Run(1, 100);
  third.FinishTuning();
  EXPECT_THAT(third.observer.of("ffn").compiles, ElementsAre("b1_s128 first_request"));
  EXPECT_THAT(third.observer.of("ffn").tunes, IsEmpty());
  EXPECT_EQ(third.engine->ListRecipes()[0].recipe->note.tuning, "by earlier timings");
}

TEST_F(TunerTest, DamagedChoicesAreTimedAnewAndReplaced) {
  {
    Start first(*this);
    first.Run(1, 100);
    first.WaitFor("tuned recipe", 1);
  }
  const std::filesystem::path choices = folder_.Files("choices").at(0);
  std::filesystem::resize_file(choices, std::filesystem::file_size(choices) - 1);
  {
    Start second(*this);
    EXPECT_THAT(second.Logged("kernels are timed again"), SizeIs(1));
    second.Run(1, 100);
    second.WaitFor("tuned recipe", 1);
  }
  Start third(*this);
  EXPECT_THAT(third.Logged("kernels are timed again"), IsEmpty());
}

}  // namespace
}  // namespace reprise
