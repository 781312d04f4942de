// BackgroundThrottle: lets background work go on while no replay runs, and slowly while replays do.
//
// Work is cut into slices of a few milliseconds. A slice begins at once while no replay has begun
// for a moment; otherwise only as far as the work has had less than its share of a core since it
// began: a twentieth, and more where it has waited for long. So it is always done at last, and
// traffic pays for at most one slice at a time. Time in which others have the core does not count:
// the thread's own time is measured.
//
// Threads: one thread, the one that does the work.
#pragma once

#include <cstdint>
#include <functional>

#include "runtime/base/clock.h"
#include "runtime/engine/replay/helper_pool.h"
#include "runtime/engine/types/engine_options.h"

namespace reprise {

class BackgroundThrottle {
 public:
  static constexpr double kBusyShare = 0.05;
  // Work that was asked for longer ago than kLateNs gets this larger share.
  static constexpr double kLateShare = 0.12;
  static constexpr int64_t kLateNs = int64_t{20} * 1'000'000'000;
  // The cores are idle after this time without a replay.
  static constexpr int64_t kQuietNs = 2'000'000;
  static constexpr int64_t kLookEveryNs = 1'000'000;

  struct Options {
    const Clock* clock = nullptr;
    int64_t asked_ns = 0;                            // when the work was asked for, by `clock`
    const Clock* thread_clock = nullptr;             // processor time of the calling thread
    std::function<HelperPool::Activity()> activity;  // counts replays, and captures as such
    std::function<bool()> stopped;                   // the work is not wanted any more
    std::function<void(int64_t ns)> sleep;
  };
  explicit BackgroundThrottle(Options options);

  // Returns true when a slice may run, or false when the work is to stop.
  bool Wait();
  // Returns the processor time that the thread has spent since the beginning.
  int64_t spent_ns() const { return options_.thread_clock->NowNs() - start_cpu_ns_; }

 private:
  bool Quiet(int64_t now_ns);

  const Options options_;
  const int64_t start_ns_;
  const int64_t start_cpu_ns_;
  uint64_t seen_ = 0;       // replays that had begun at the last look
  int64_t changed_ns_ = 0;  // when that number, or one that runs, was last seen
};

// Returns the options for work on a thread of options.captures, which is asked for at `asked_ns`:
// replays on options.cores hold it back, and captures. `options` and `thread_clock` outlive it.
BackgroundThrottle::Options ThrottleOptions(const EngineOptions& options, int64_t asked_ns,
                                            const Clock& thread_clock,
                                            std::function<bool()> stopped);

}  // namespace reprise
