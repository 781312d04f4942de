#include "runtime/engine/replay/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <new>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/engine/types/run_control.h"

namespace reprise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Seen {
  std::vector<int> parts;
  bool lone = true;
};

void Note(const LaunchArgs& args) {
  EXPECT_EQ(args.part, 0);
  // Params are const to kernels; this one only looks at how it is called.
  Seen& seen = *const_cast<Seen*>(static_cast<const Seen*>(args.params));
  seen.parts.push_back(args.parts);
  seen.lone = seen.lone && args.lone_part;
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
  EXPECT_TRUE(seen_->lone);
}

TEST_F(StreamTest, PrimingComputesIntegersWholeAsTheyMayBePlaces) {
  Add(1e12, DType::kInt64);
  Prime();
  EXPECT_THAT(seen_->parts, ElementsAre(1));
}

// Params are a list of the launches that ran.
void NotePhase(const LaunchArgs& args) {
  auto& phases = *const_cast<std::vector<int>*>(static_cast<const std::vector<int>*>(args.params));
  phases.push_back(100 * args.launch + args.phase);
}

TEST_F(StreamTest, PhasesOfALaunchRunInOrderAndTheFirstOfThemPrimeIt) {
  const auto run = std::make_shared<std::vector<int>>();
  for (const int phases : {1, 8, 2}) {
    Add(1e12, DType::kFloat32);
    Launch& launch = recipe_.launches.back();
    launch.run = NotePhase;
    launch.params = run;
    launch.phases = phases;
  }
  EXPECT_EQ(recipe_.num_steps(), 3);
  recipe_.SetSteps();
  EXPECT_EQ(recipe_.num_steps(), 11);
  HelperPool one(1);
  for (HelperPool* const pool : {static_cast<HelperPool*>(nullptr), &one}) {
    run->clear();
    const auto stream = Stream::Create({.cores = pool, .max_arena_bytes = size_t{64} << 20});
    ASSERT_TRUE(stream.ok());
    const Frame frame = (*stream)->MakeFrame(recipe_, nullptr, nullptr);
    (*stream)->Replay(recipe_, frame);
    EXPECT_THAT(*run, ElementsAre(0, 100, 101, 102, 103, 104, 105, 106, 107, 200, 201));
  }
  run->clear();
  Prime();
  EXPECT_THAT(*run, ElementsAre(0, 100, 101, 102, 103, 104, 105, 200, 201));
}

// Params are counts of the parts that each phase has begun and ended, whatever part of whatever
// number.
struct Shares {
  static constexpr int kAll = 60, kPhases = 40;
  std::array<std::atomic<int>, kPhases> ended{};
  std::atomic<int> early{0};
};
void Share(const LaunchArgs& args) {
  auto& shares = *const_cast<Shares*>(static_cast<const Shares*>(args.params));
  const auto phase = static_cast<size_t>(args.phase);
  if (phase > 0 && shares.ended[phase - 1] != Shares::kAll) ++shares.early;
  shares.ended[phase] += Shares::kAll / args.parts;
}

TEST_F(StreamTest, NoPhaseBeginsBeforeTheOneBeforeIsDone) {
  HelperPool pool(3);
  for (int round = 0; round < 50; ++round) {
    const auto shares = std::make_shared<Shares>();
    recipe_ = Recipe();
    Add(1, DType::kFloat32);
    recipe_.launches[0].run = Share;
    recipe_.launches[0].params = shares;
    recipe_.launches[0].phases = Shares::kPhases;
    recipe_.work = 3e9;
    recipe_.SetSteps();
    const auto stream =
        Stream::Create({.cores = &pool, .max_threads = 3, .max_arena_bytes = size_t{64} << 20});
    ASSERT_TRUE(stream.ok());
    (*stream)->Replay(recipe_, (*stream)->MakeFrame(recipe_, nullptr, nullptr));
    EXPECT_EQ(shares->early, 0);
    for (const std::atomic<int>& ended : shares->ended) ASSERT_EQ(ended, Shares::kAll);
  }
}

// Says that its datum is out of range.
void Refuse(const LaunchArgs& args) {
  args.frame->errors->Report(args.launch, 0, 0, 99, 0, 9);
  Note(args);
}

TEST_F(StreamTest, LaunchesBehindADataErrorAreLeftOutWhereNobodyReadsTheOutputs) {
  for (int i = 0; i < 3; ++i) Add(1, DType::kFloat32);
  recipe_.launches[1].run = Refuse;
  recipe_.index_sources.resize(3);
  const auto stream = Stream::Create({.max_arena_bytes = 64 << 20});
  ASSERT_TRUE(stream.ok());
  for (const bool ends : {true, false}) {
    seen_->parts.clear();
    FirstDataError error(recipe_);
    const Frame frame = (*stream)->MakeFrame(recipe_, nullptr, &error);
    (*stream)->Replay(recipe_, frame, ends ? &error : nullptr);
    EXPECT_EQ(seen_->parts.size(), ends ? 2 : 3);
    EXPECT_TRUE(error.any());
  }
}

// Wants more memory than there is, on every thread that runs a part of it.
void Starve(const LaunchArgs&) { throw std::bad_alloc(); }

void Break(const LaunchArgs&) { throw std::runtime_error("a bug of the library"); }

TEST_F(StreamTest, LaunchThatFindsNoMemoryIsNamedAtTheCallerWhoeverRanIt) {
  for (int i = 0; i < 3; ++i) Add(1e9, DType::kFloat32);
  recipe_.launches[1].run = Starve;
  recipe_.launches[1].node = "Tile 'large'";
  recipe_.work = 3e9;
  HelperPool cores(2);
  for (HelperPool* pool : {static_cast<HelperPool*>(nullptr), &cores}) {
    const auto stream =
        Stream::Create({.cores = pool, .max_threads = 2, .max_arena_bytes = size_t{64} << 20});
    ASSERT_TRUE(stream.ok());
    const Frame frame = (*stream)->MakeFrame(recipe_, nullptr, nullptr);
    recipe_.launches[0].run = recipe_.launches[2].run = [](const LaunchArgs&) {};
    for (const bool primes : {false, true}) {
      const absl::Status status = WithinMemory([] { return "the request"; },
                                               [&] {
                                                 if (primes) {
                                                   (*stream)->Prime(recipe_, frame);
                                                 } else {
                                                   (*stream)->Replay(recipe_, frame);
                                                 }
                                                 return absl::OkStatus();
                                               });
      EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("the request: Tile 'large'"));
    }
    // Any other exception is a bug, and named as well.
    recipe_.launches[1].run = Break;
    const absl::Status broken = WithinMemory([] { return "the request"; },
                                             [&] {
                                               (*stream)->Replay(recipe_, frame);
                                               return absl::OkStatus();
                                             });
    EXPECT_EQ(broken.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(broken.message()), HasSubstr("Tile 'large'"));
    EXPECT_THAT(std::string(broken.message()), HasSubstr("a bug of the library"));
    // The next replay is as any other.
    recipe_.launches[1].run = [](const LaunchArgs&) {};
    (*stream)->Replay(recipe_, frame);
    recipe_.launches[1].run = Starve;
  }
}

// Params count the calls; the first of them sets the flag.
struct Stopping {
  StopFlag flag;
  std::atomic<int> calls{0};
};
void StopAfterThis(const LaunchArgs& args) {
  auto& stopping = *const_cast<Stopping*>(static_cast<const Stopping*>(args.params));
  ++stopping.calls;
  stopping.flag.Stop();
}

TEST_F(StreamTest, AReplayThatNobodyWaitsForEndsBetweenLaunches) {
  const auto stopping = std::make_shared<Stopping>();
  for (int i = 0; i < 3; ++i) Add(1, DType::kFloat32);
  recipe_.launches[1].run = StopAfterThis;
  recipe_.launches[1].params = stopping;
  recipe_.SetSteps();
  const FakeClock clock;
  HelperPool two(2);
  for (HelperPool* pool : {static_cast<HelperPool*>(nullptr), &two}) {
    const auto stream = Stream::Create({.cores = pool, .max_arena_bytes = size_t{64} << 20});
    ASSERT_TRUE(stream.ok());
    seen_->parts.clear();
    const Frame frame = (*stream)->MakeFrame(recipe_, nullptr, nullptr);
    const RunControl control(clock, {}, &stopping->flag);
    EXPECT_EQ((*stream)->Replay(recipe_, frame, nullptr, &control), pool == nullptr ? 2 : 0);
    EXPECT_EQ(seen_->parts.size(), pool == nullptr ? 1 : 0);  // and none where it is set before
    EXPECT_EQ((*stream)->Replay(recipe_, frame), -1);
  }
}

TEST_F(StreamTest, ALongLaunchIsCutSoThatItCanEndWithin) {
  const auto stopping = std::make_shared<Stopping>();
  stopping->flag.Stop();  // it has not begun
  Add(1e12, DType::kFloat32);
  recipe_.launches[0].run = StopAfterThis;
  recipe_.launches[0].params = stopping;
  recipe_.work = 1e12;
  recipe_.SetSteps();
  const auto stream = Stream::Create({.max_arena_bytes = size_t{64} << 20});
  ASSERT_TRUE(stream.ok());
  const FakeClock clock;
  const Frame frame = (*stream)->MakeFrame(recipe_, nullptr, nullptr);
  const RunControl control(clock, {}, &stopping->flag);
  EXPECT_EQ((*stream)->Replay(recipe_, frame, nullptr, &control), 0);
  EXPECT_EQ(stopping->calls, 0);
  const StopFlag never;
  const RunControl awaited(clock, {}, &never);
  EXPECT_EQ((*stream)->Replay(recipe_, frame, nullptr, &awaited), -1);
  EXPECT_EQ(stopping->calls, 143);  // pieces of 7e9
  const auto again = std::make_shared<Stopping>();
  recipe_.launches[0].params = again;
  const RunControl other(clock, {}, &again->flag);
  EXPECT_EQ((*stream)->Replay(recipe_, frame, nullptr, &other), 0);
  EXPECT_EQ(again->calls, 1);
}

TEST_F(StreamTest, PiecesOfALongLaunchAreAllOfItAndItsPhasesStayInOrder) {
  HelperPool pool(3);
  const auto shares = std::make_shared<Shares>();
  Add(1, DType::kFloat32);
  recipe_.launches[0].run = Share;
  recipe_.launches[0].params = shares;
  recipe_.launches[0].phases = Shares::kPhases;
  recipe_.launches[0].work.flops = 7e9 * Shares::kPhases * 5.0;  // 5 pieces of one part
  recipe_.work = recipe_.launches[0].work.flops;
  recipe_.SetSteps();
  const auto stream =
      Stream::Create({.cores = &pool, .max_threads = 3, .max_arena_bytes = size_t{64} << 20});
  ASSERT_TRUE(stream.ok());
  const FakeClock clock;
  const RunControl control(clock, {});
  const Frame frame = (*stream)->MakeFrame(recipe_, nullptr, nullptr);
  EXPECT_EQ((*stream)->Replay(recipe_, frame, nullptr, &control), -1);
  EXPECT_EQ(shares->early, 0);
  for (const std::atomic<int>& ended : shares->ended) ASSERT_EQ(ended, Shares::kAll);
}

// Params are a clock, which this moves.
void TakeASecond(const LaunchArgs& args) {
  const_cast<FakeClock*>(static_cast<const FakeClock*>(args.params))->AdvanceNs(1'000'000'000);
}

TEST_F(StreamTest, AReplayEndsInFrontOfTheLaunchAtWhichItsTimeIsOver) {
  const auto clock = std::make_shared<FakeClock>();
  for (int i = 0; i < 5; ++i) {
    Add(1e9, DType::kFloat32);
    recipe_.launches.back().run = TakeASecond;
    recipe_.launches.back().params = clock;
    recipe_.launches.back().node = absl::StrCat("MatMul 'm", i, "'");
  }
  recipe_.SetSteps();
  const auto stream = Stream::Create({.max_arena_bytes = size_t{64} << 20});
  ASSERT_TRUE(stream.ok());
  RunControl control(*clock, {.max_ns = 2'500'000'000});
  control.Begin();
  const Frame frame = (*stream)->MakeFrame(recipe_, nullptr, nullptr);
  EXPECT_EQ((*stream)->Replay(recipe_, frame, nullptr, &control), 3);
  const absl::Status why = control.Ended(recipe_.launches[3].node);
  EXPECT_TRUE(absl::IsResourceExhausted(why));
  EXPECT_EQ(why.message(),
            "MatMul 'm3': the request has computed for 3000 ms, the limit is 2500 "
            "(reprise.max_request_ms)");
}

}  // namespace
}  // namespace reprise
