// A decoder that several ranks compute, each with an engine of its own.
#include "runtime/generate/rank_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "tests/runtime/generate/generator_fixture.h"

namespace reprise {
namespace {

using testing::HasSubstr;

constexpr auto kLongest = std::chrono::seconds(30);

struct Wanted {
  int rank = 0, ranks = 2;
  std::string place;
  float weights = 1;
  int layers = 1;
  Parallelism parallelism = Parallelism::kTensor;
  int lanes = 1;
  bool speculate = true;  // else steps are the same in each run
};

// One rank as a process has it: an engine, a generator a lane, and the threads that step.
class RankProcess {
 public:
  RankProcess(int rank, const std::string& place, float weights = 1)
      : RankProcess({.rank = rank, .place = place, .weights = weights}) {}
  explicit RankProcess(const Wanted& wanted) : wanted_(wanted) {
    model_ = Load();
    auto hub = RankHub::Open({.rank = wanted.rank,
                              .ranks = wanted.ranks,
                              .address = *RankAddress::Parse("unix:" + wanted.place),
                              .binary = "b",
                              .isa = "i",
                              .parallelism = wanted.parallelism});
    EXPECT_TRUE(hub.ok()) << hub.status();
    hub_ = *std::move(hub);
    {
      const MutexLock lock(mutex_);
      scores_.resize(wanted.lanes);
    }
    for (int lane = 0; lane < wanted.lanes; ++lane) generators_.push_back(Made(hub_.get(), lane));
    for (int lane = 0; lane < wanted.lanes; ++lane) {
      threads_.emplace_back([this, lane] {
        Generator& generator = *generators_[lane];
        while (!stop_) {
          if (!generator.Step()) generator.Wait(1'000'000);
        }
      });
    }
  }
  ~RankProcess() {
    stop_ = true;
    for (const auto& generator : generators_) generator->Wake();
    for (std::thread& thread : threads_) thread.join();
    generators_.clear();
  }

  std::unique_ptr<Generator> Made(RankHub* hub, int lane = 0) {
    const auto keep = [this, lane](absl::Span<const float> scores) {
      const MutexLock lock(mutex_);
      scores_[lane].insert(scores_[lane].end(), scores.begin(), scores.end());
    };
    auto made = Try(hub, keep, lane);
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }
  // Returns a generator of this process alone.
  std::unique_ptr<Generator> Alone(std::function<void(absl::Span<const float>)> on_scores) {
    auto made = Try(nullptr, std::move(on_scores), 0);
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }
  Generator& generator(int lane = 0) { return *generators_[lane]; }
  int64_t prepared_bytes() const { return model_->owner()->parameters().prepared_bytes(); }
  // Returns the scores of all steps.
  std::vector<float> scores(int lane = 0) const {
    const MutexLock lock(mutex_);
    return scores_[lane];
  }
  // Returns the same once there are as many as these.
  std::vector<float> AwaitScores(size_t count, int lane = 0) const {
    const auto end = std::chrono::steady_clock::now() + kLongest;
    while (scores(lane).size() < count && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
    return scores(lane);
  }

  // Waits until all groups are complete, or are not; returns the state of the first.
  absl::Status Await(bool complete) {
    const auto end = std::chrono::steady_clock::now() + kLongest;
    for (const auto& generator : generators_) {
      while (generator->state().ok() != complete && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    return generators_[0]->state();
  }

  // Waits until the state names `text`; returns it.
  std::string AwaitReason(const std::string& text) const {
    const auto end = std::chrono::steady_clock::now() + kLongest;
    std::string state;
    while (state.find(text) == std::string::npos && std::chrono::steady_clock::now() < end) {
      state = std::string(generators_[0]->state().message());
      std::this_thread::yield();
    }
    return state;
  }

  absl::StatusOr<std::unique_ptr<Generator>> Try(
      RankHub* hub, std::function<void(absl::Span<const float>)> on_scores, int lane) {
    return Generator::Create(fixture_.engine, model_,
                             {.context = 256,
                              .step_tokens = 64,
                              .speculate = wanted_.speculate,
                              .events = {.on_scores = std::move(on_scores)},
                              .ranks = hub,
                              .lane = lane});
  }

 private:
  std::shared_ptr<Model> Load() {
    const TempFolder folder;
    auto model = fixture_.engine.Load(
        {.id = {"tiny", 1},
         .path = folder.Write("model.onnx", TinyLayersModel(wanted_.weights, wanted_.layers)),
         .one_order = true});
    EXPECT_TRUE(model.ok()) << model.status();
    return *std::move(model);
  }

  const Wanted wanted_;
  EngineFixture fixture_;
  std::shared_ptr<Model> model_;
  std::unique_ptr<RankHub> hub_;
  std::vector<std::unique_ptr<Generator>> generators_;  // one a lane
  mutable Mutex mutex_;
  std::vector<std::vector<float>> scores_ GUARDED_BY(mutex_);  // one a lane
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

// The events of one request, which another thread tells.
struct Answer {
  std::vector<int64_t> ids;
  std::vector<float> logprobs;
  absl::Status status;
  std::atomic<bool> last{false};
  std::function<void()> on_event = [] {};  // called by the thread that steps

  void Await() const {
    const auto end = std::chrono::steady_clock::now() + kLongest;
    while (!last && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_TRUE(last);
  }
};

absl::Status Ask(Generator& generator, std::vector<int64_t> ids, Answer& answer, int n = 1,
                 int64_t max_tokens = 24) {
  return generator
      .Submit({.ids = std::move(ids),
               .sampling = {.max_tokens = max_tokens,
                            .temperature = n > 1 ? 1.0f : 0.0f,
                            .seed = 3,
                            .logprobs = 0,
                            .n = n},
               .on_event =
                   [&answer](const GenerationEvent& event) {
                     for (const SampledToken& token : event.tokens) {
                       answer.ids.push_back(token.id);
                       answer.logprobs.push_back(token.logprob);
                     }
                     if (!event.status.ok()) answer.status = event.status;
                     answer.on_event();
                     if (event.last) answer.last = true;
                   }})
      .status();
}

std::vector<int64_t> Prompt(int64_t length, int64_t seed) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < length; ++i) ids.push_back((seed * 31 + i * i * 7 + i) % 37);
  return ids;
}

class RankStepsTest : public testing::Test {
 protected:
  std::string Place() const { return folder_.File("ranks"); }
  const TempFolder folder_;
};

TEST_F(RankStepsTest, TwoRanksMakeTheTokensOfOne) {
  RankProcess first(0, Place());
  RankProcess second(1, Place());
  ASSERT_TRUE(first.Await(true).ok()) << first.generator().state();
  const std::unique_ptr<Generator> alone = first.Alone(nullptr);
  for (const int64_t length : {1, 15, 40, 100}) {
    // The same prompt again finds pages; several answers copy the last one.
    for (const int n : {1, 3, 1}) {
      Answer expected, answer;
      ASSERT_TRUE(Ask(*alone, Prompt(length, length), expected, n).ok());
      while (alone->Step()) {
      }
      ASSERT_TRUE(Ask(first.generator(), Prompt(length, length), answer, n).ok());
      answer.Await();
      ASSERT_TRUE(answer.status.ok()) << answer.status;
      EXPECT_EQ(answer.ids, expected.ids) << length << " tokens, " << n << " answers";
      ASSERT_EQ(answer.logprobs.size(), expected.logprobs.size());
      for (size_t i = 0; i < answer.logprobs.size(); ++i) {
        EXPECT_NEAR(answer.logprobs[i], expected.logprobs[i], 1e-4);
      }
    }
  }
  // The other rank's last step may end after the answer.
  const std::vector<float> ours = first.scores();
  const std::vector<float> theirs = second.AwaitScores(ours.size());
  ASSERT_EQ(ours.size(), theirs.size());
  EXPECT_EQ(std::memcmp(ours.data(), theirs.data(), ours.size() * sizeof(float)), 0)
      << "all ranks have equal bits";
}

class StagesTest : public testing::TestWithParam<int> {
 protected:
  Wanted Stage(int rank, int lanes = 1) const {
    return {.rank = rank,
            .ranks = GetParam(),
            .place = folder_.File("ranks"),
            .layers = 4,
            .parallelism = Parallelism::kPipeline,
            .lanes = lanes,
            .speculate = false};
  }
  std::vector<std::unique_ptr<RankProcess>> All(int lanes = 1) const {
    std::vector<std::unique_ptr<RankProcess>> all;
    for (int rank = 0; rank < GetParam(); ++rank) {
      all.push_back(std::make_unique<RankProcess>(Stage(rank, lanes)));
    }
    for (const auto& one : all) EXPECT_TRUE(one->Await(true).ok()) << one->generator().state();
    return all;
  }
  const TempFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(All, StagesTest, testing::Values(2, 3));

TEST_P(StagesTest, MakeTheBitsOfOneProcess) {
  const auto all = All();
  std::vector<float> wanted;
  const std::unique_ptr<Generator> alone = all[0]->Alone([&](absl::Span<const float> scores) {
    wanted.insert(wanted.end(), scores.begin(), scores.end());
  });
  for (const int64_t length : {1, 15, 40, 100}) {
    // The same prompt again finds pages; several answers copy the last one.
    for (const int n : {1, 3, 1}) {
      Answer expected, answer;
      ASSERT_TRUE(Ask(*alone, Prompt(length, length), expected, n).ok());
      while (alone->Step()) {
      }
      ASSERT_TRUE(Ask(all[0]->generator(), Prompt(length, length), answer, n).ok());
      answer.Await();
      ASSERT_TRUE(answer.status.ok()) << answer.status;
      EXPECT_EQ(answer.ids, expected.ids) << length << " tokens, " << n << " answers";
      EXPECT_EQ(answer.logprobs, expected.logprobs);
    }
  }
  ASSERT_GT(wanted.size(), 0u);
  for (const auto& one : all) {
    const std::vector<float> scores = one->AwaitScores(wanted.size());
    ASSERT_EQ(scores.size(), wanted.size());
    EXPECT_EQ(std::memcmp(scores.data(), wanted.data(), wanted.size() * sizeof(float)), 0);
  }
}

TEST_P(StagesTest, EachRankPreparesTheWeightsOfItsStageOnceForAllLanes) {
  int64_t whole = 0;
  {
    RankProcess one({.place = folder_.File("one"), .layers = 4});
    (void)one.Alone(nullptr);
    whole = one.prepared_bytes();
  }
  const auto single = All();
  std::vector<int64_t> bytes;
  for (const auto& one : single) {
    bytes.push_back(one->prepared_bytes());
    EXPECT_LT(bytes.back(), whole * 3 / 4) << "of " << whole;
  }
  for (int rank = 0; rank < GetParam(); ++rank) {
    Wanted more = Stage(rank, 2);
    more.place = folder_.File("lanes");
    EXPECT_EQ(RankProcess(more).prepared_bytes(), bytes[rank]);
  }
}

TEST_P(StagesTest, LanesMakeTheTokensOfOneProcessSideBySide) {
  const int lanes = GetParam();
  const auto all = All(lanes);
  const std::unique_ptr<Generator> alone = all[0]->Alone(nullptr);
  for (int round = 0; round < 3; ++round) {
    std::vector<Answer> expected(lanes), answers(lanes);
    for (int lane = 0; lane < lanes; ++lane) {
      const std::vector<int64_t> prompt = Prompt(20 + 9 * lane + round, lane);
      ASSERT_TRUE(Ask(all[0]->generator(lane), prompt, answers[lane], 1, 60).ok());
      ASSERT_TRUE(Ask(*alone, prompt, expected[lane], 1, 60).ok());
      while (alone->Step()) {
      }
    }
    for (int lane = 0; lane < lanes; ++lane) {
      answers[lane].Await();
      ASSERT_TRUE(answers[lane].status.ok()) << answers[lane].status;
      EXPECT_EQ(answers[lane].ids, expected[lane].ids) << "lane " << lane;
      EXPECT_EQ(answers[lane].logprobs, expected[lane].logprobs);
    }
  }
}

TEST_P(StagesTest, ALaneWaitsForNoOther) {
  const auto all = All(2);
  // The thread of the first lane is held within an event.
  Answer held, free;
  std::atomic<bool> begun{false}, let_go{false};
  held.on_event = [&] {
    begun = true;
    while (!let_go) std::this_thread::yield();
  };
  ASSERT_TRUE(Ask(all[0]->generator(0), Prompt(30, 2), held).ok());
  while (!begun) std::this_thread::yield();
  ASSERT_TRUE(Ask(all[0]->generator(1), Prompt(30, 2), free).ok());
  free.Await();
  let_go = true;
  held.Await();
  EXPECT_TRUE(free.status.ok()) << free.status;
  EXPECT_EQ(held.ids, free.ids);
}

TEST_F(RankStepsTest, FewerLayersThanRanksAreRefused) {
  RankProcess one({.place = Place(), .layers = 2});
  auto hub = RankHub::Open({.rank = 0,
                            .ranks = 3,
                            .address = *RankAddress::Parse("unix:" + Place() + "2"),
                            .parallelism = Parallelism::kPipeline});
  ASSERT_TRUE(hub.ok()) << hub.status();
  const auto refused = one.Try(hub->get(), nullptr, 0);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("cannot be cut into 3 stages: it has 2 layers"));
}

TEST_F(RankStepsTest, ARankOfAnotherParallelismIsRefused) {
  RankProcess first(0, Place());
  RankProcess second(
      {.rank = 1, .place = Place(), .layers = 2, .parallelism = Parallelism::kPipeline});
  EXPECT_THAT(first.AwaitReason("parallelism"),
              HasSubstr("its parallelism is pipeline, and rank 0's is tensor"));
}

TEST_F(RankStepsTest, OnlyRankZeroTakesRequests) {
  RankProcess first(0, Place());
  RankProcess second(1, Place());
  ASSERT_TRUE(second.Await(true).ok());
  Answer answer;
  const absl::Status refused = Ask(second.generator(), {1, 2}, answer);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("rank 1 of 2"));
}

TEST_F(RankStepsTest, AMissingRankIsNamedAndItsReturnBeginsAgain) {
  RankProcess first(0, Place());
  Answer early;
  const absl::Status refused = Ask(first.generator(), {1, 2}, early);
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("rank 1 of 2"));
  std::vector<int64_t> before;
  for (int times = 0; times < 2; ++times) {
    auto second = std::make_unique<RankProcess>(1, Place());
    ASSERT_TRUE(first.Await(true).ok()) << first.generator().state();
    // The pages of this prompt were computed by a rank that has gone: they are not found.
    Answer whole;
    ASSERT_TRUE(Ask(first.generator(), Prompt(60, 1), whole).ok());
    whole.Await();
    ASSERT_TRUE(whole.status.ok()) << whole.status;
    if (times == 0) before = whole.ids;
    EXPECT_EQ(whole.ids, before);
    // The rank goes between two steps of a request.
    Answer cut;
    std::atomic<bool> begun{false}, gone{false};
    cut.on_event = [&] {
      begun = true;
      while (!gone) std::this_thread::yield();
    };
    ASSERT_TRUE(Ask(first.generator(), Prompt(30, 2), cut, 1, 200).ok());
    while (!begun) std::this_thread::yield();
    second = nullptr;
    gone = true;
    cut.Await();
    EXPECT_EQ(cut.status.code(), absl::StatusCode::kUnavailable) << cut.status;
    EXPECT_THAT(std::string(cut.status.message()), HasSubstr("rank 1 of 2"));
    EXPECT_FALSE(first.Await(false).ok());
  }
}

TEST_F(RankStepsTest, ARankWithOtherWeightsIsRefused) {
  RankProcess first(0, Place());
  RankProcess second(1, Place(), 1.5f);
  EXPECT_THAT(first.AwaitReason("plan"), HasSubstr("rank 1 of 2: its plan of the model"));
}

TEST(RankMessageTest, BytesThatAreNoMessageAreRefused) {
  auto pool = PagePool::Create({.page_bytes = 64, .max_pages = 4});
  ASSERT_TRUE(pool.ok());
  Sequence sequence;
  sequence.tokens = {5, 6, 7};
  for (const PageId page : {2, 0}) sequence.Keep(page, **pool);
  PlannedStep step;
  step.items.push_back({.sequence = &sequence, .count = 3, .picks = 1});
  const std::string good = StepMessage(step);
  const auto parsed = ParseRankMessage(good, **pool);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_EQ(parsed->step.items.size(), 1u);
  EXPECT_EQ(parsed->step.tokens, 3);
  EXPECT_EQ(parsed->sequences[0]->IdToCompute(2), 7);
  EXPECT_EQ(parsed->sequences[0]->addresses, sequence.addresses);
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(ParseRankMessage(good.substr(0, size), **pool).ok()) << size;
  }
  EXPECT_FALSE(ParseRankMessage(good + good, **pool).ok());
  EXPECT_FALSE(ParseRankMessage(CopyMessage(0, 4), **pool).ok());
  EXPECT_TRUE(ParseRankMessage(CopyMessage(0, 3), **pool).ok());
  step.items[0].count = 40;
  sequence.tokens.resize(40);
  EXPECT_FALSE(ParseRankMessage(StepMessage(step), **pool).ok()) << "two pages have 32 positions";
}

}  // namespace
}  // namespace reprise
