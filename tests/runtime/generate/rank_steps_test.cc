// A decoder that two ranks compute, each with an engine of its own.
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

// One rank as a process has it: an engine, a generator, and the thread that steps.
class RankProcess {
 public:
  RankProcess(int rank, const std::string& place, float weights = 1) {
    model_ = Load(weights);
    auto hub = RankHub::Open({.rank = rank,
                              .ranks = 2,
                              .address = *RankAddress::Parse("unix:" + place),
                              .binary = "b",
                              .isa = "i"});
    EXPECT_TRUE(hub.ok()) << hub.status();
    hub_ = *std::move(hub);
    generator_ = Made(hub_.get());
    thread_ = std::thread([this] {
      while (!stop_) {
        if (!generator_->Step()) generator_->Wait(1'000'000);
      }
    });
  }
  ~RankProcess() {
    stop_ = true;
    generator_->Wake();
    thread_.join();
    generator_ = nullptr;
  }

  std::unique_ptr<Generator> Made(RankHub* hub) {
    const auto keep = [this](absl::Span<const float> scores) {
      const MutexLock lock(mutex_);
      scores_.insert(scores_.end(), scores.begin(), scores.end());
    };
    auto made = Generator::Create(
        fixture_.engine, model_,
        {.context = 256,
         .step_tokens = 64,
         .events = {.on_scores =
                        hub == nullptr ? std::function<void(absl::Span<const float>)>() : keep},
         .ranks = hub});
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }
  Generator& generator() { return *generator_; }
  // Returns the scores of all steps.
  std::vector<float> scores() const {
    const MutexLock lock(mutex_);
    return scores_;
  }

  // Waits until the group is complete, or is not; returns its state.
  absl::Status Await(bool complete) {
    const auto end = std::chrono::steady_clock::now() + kLongest;
    while (generator_->state().ok() != complete && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return generator_->state();
  }

 private:
  std::shared_ptr<Model> Load(float weights) {
    const TempFolder folder;
    auto model = fixture_.engine.Load({.id = {"tiny", 1},
                                       .path = folder.Write("model.onnx", TinyLayersModel(weights)),
                                       .one_order = true});
    EXPECT_TRUE(model.ok()) << model.status();
    return *std::move(model);
  }

  EngineFixture fixture_;
  std::shared_ptr<Model> model_;
  std::unique_ptr<RankHub> hub_;
  std::unique_ptr<Generator> generator_;
  mutable Mutex mutex_;
  std::vector<float> scores_ GUARDED_BY(mutex_);
  std::atomic<bool> stop_{false};
  std::thread thread_;
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
  const std::unique_ptr<Generator> alone = first.Made(nullptr);
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
  const auto end = std::chrono::steady_clock::now() + kLongest;
  const std::vector<float> ours = first.scores();
  while (second.scores().size() < ours.size() && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  const std::vector<float> theirs = second.scores();
  ASSERT_EQ(ours.size(), theirs.size());
  EXPECT_EQ(std::memcmp(ours.data(), theirs.data(), ours.size() * sizeof(float)), 0)
      << "all ranks have equal bits";
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
  const auto end = std::chrono::steady_clock::now() + kLongest;
  std::string state;
  while (state.find("plan") == std::string::npos && std::chrono::steady_clock::now() < end) {
    state = std::string(first.generator().state().message());
    std::this_thread::yield();
  }
  EXPECT_THAT(state, HasSubstr("rank 1 of 2: its plan of the model"));
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
