// Limits on memory, a model's and all models' together, and the messages where they are too small.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/testing/engine_fixture.h"
#include "tests/testing/masked_mean.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class MemoryLimitsTest : public testing::Test {
 protected:
  void MakeEngine(EngineOptions options = {}) {
    options.device = &device_;
    options.clock = &clock_;
    options.cores = &cores_;
    options.log = [this](const std::string& line) {
      MutexLock lock(mutex_);
      log_.push_back(line);
    };
    engine_.emplace(options, observer_);
  }
  absl::StatusOr<std::shared_ptr<Model>> Load(ModelOptions options = {}) {
    if (options.id.name.empty()) options.id = {"mean", 1};
    options.path = folder_.Write("model.onnx", MaskedMeanModel());
    options.bucket_mode = BucketMode::kOff;
    return engine_->Load(std::move(options));
  }
  Response Run(const Model& model, int64_t rows, int64_t length, Stream& stream) {
    const MeanRequest tokens(rows, length);
    return engine_->RunOne(model, tokens.request, stream);
  }
  std::vector<std::string> Logged(const std::string& what) {
    MutexLock lock(mutex_);
    std::vector<std::string> lines;
    for (const std::string& line : log_) {
      if (line.find(what) != std::string::npos) lines.push_back(line);
    }
    return lines;
  }

  const TempFolder folder_;
  FakeClock clock_;
  HelperPool cores_{2};
  CpuDevice device_;
  RememberingObserver observer_;
  Mutex mutex_;
  std::vector<std::string> log_;
  std::optional<Engine> engine_;
  std::unique_ptr<Stream> stream_ = *Stream::Create({});
};

TEST_F(MemoryLimitsTest, RecipeThatIsMadeAgainRightAfterItsEvictionIsNamedOnceAMinute) {
  MakeEngine();
  const auto model = *Load({.max_exact = 1, .no_padding = {"batch", "sequence"}});
  for (const int64_t length : {5, 6}) ASSERT_TRUE(Run(*model, 1, length, *stream_).status.ok());
  EXPECT_THAT(Logged("thrash"), SizeIs(0));
  for (const int64_t length : {5, 6, 5, 6}) Run(*model, 1, length, *stream_);
  EXPECT_THAT(Logged("thrash"), SizeIs(1));
  EXPECT_THAT(Logged("thrash")[0], HasSubstr("sequence=5"));
  EXPECT_THAT(Logged("thrash")[0], HasSubstr("reprise.max_exact: \"2\""));
  // A recipe that comes back after a minute is not thrashing.
  clock_.AdvanceNs(int64_t{61} * 1'000'000'000);
  Run(*model, 1, 5, *stream_);
  EXPECT_THAT(Logged("thrash"), SizeIs(1));
  Run(*model, 1, 6, *stream_);
  EXPECT_THAT(Logged("thrash"), SizeIs(2));
}

TEST_F(MemoryLimitsTest, ReplayBeyondTheModelsArenaIsRefusedWithBothNumbers) {
  MakeEngine();
  const auto model = *Load({.max_arena_bytes = 4096});
  EXPECT_TRUE(Run(*model, 1, 3, *stream_).status.ok());
  const absl::Status refused = Run(*model, 8, 500, *stream_).status;
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("reprise.max_arena_mb allows 4096"));
  EXPECT_TRUE(Run(*model, 1, 3, *stream_).status.ok());
}

TEST_F(MemoryLimitsTest, ModelWhoseParametersAreTooLargeIsNotLoaded) {
  MakeEngine();
  const auto refused = Load({.max_parameter_bytes = 100});
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("reprise.max_parameter_mb"));
  EXPECT_EQ(engine_->parameter_bytes(), 0);
}

TEST_F(MemoryLimitsTest, ModelsShareTheLimitOfParametersAndGiveBackWhatTheyTook) {
  MakeEngine();
  auto alone = Load();
  ASSERT_TRUE(alone.ok()) << alone.status();
  const int64_t one = engine_->parameter_bytes();
  EXPECT_GE(one, kMeanVocabulary * kMeanHidden * 4);
  alone->reset();
  MakeEngine({.parameter_bytes = 3 * one / 2});
  {
    const auto first = Load({.id = {"first", 1}});
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ(engine_->parameter_bytes(), one);
    const auto second = Load({.id = {"second", 1}});
    EXPECT_THAT(std::string(second.status().message()), HasSubstr("--parameter-memory-mb"));
  }
  EXPECT_EQ(engine_->parameter_bytes(), 0);
  EXPECT_TRUE(Load({.id = {"second", 1}}).ok());
}

TEST_F(MemoryLimitsTest, EvictionDoesNotBreakReplaysThatRun) {
  MakeEngine();
  const auto model = *Load({.max_exact = 1, .no_padding = {"batch", "sequence"}});
  const auto right = *Load({.id = {"right", 1}, .no_padding = {"batch", "sequence"}});
  std::vector<std::string> answers;
  for (int64_t length = 1; length <= 6; ++length) {
    answers.push_back(Run(*right, 1, length, *stream_).outputs[0].bytes);
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const auto stream = *Stream::Create({});
      for (int i = 0; i < 60; ++i) {
        const int64_t length = 1 + (i * (t + 1)) % 6;
        const Response response = Run(*model, 1, length, *stream);
        ASSERT_TRUE(response.status.ok()) << response.status;
        EXPECT_EQ(response.outputs[0].bytes, answers[length - 1]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  int64_t exact = 0;
  for (const CachedRecipe& one : engine_->ListRecipes()) exact += one.recipe->note.model == "mean";
  EXPECT_LE(exact, 1);
}

}  // namespace
}  // namespace reprise
