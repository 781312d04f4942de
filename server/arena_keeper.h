// ArenaKeeper: the streams' memory: there before a recipe needs it, given back when nothing runs.
//
// A stream that nothing ran on for the configured time gives its pages back to the system; the
// next replay on it takes them again, which costs about a millisecond for a few megabytes. So
// does, in any configuration, a stream that holds a large arena of which no replay has needed much
// for a while, and one whose memory the values of a request have decided: forty bytes of a request
// must not keep gigabytes.
//
// Ownership: borrows the clock, which outlives it. Threads: all methods from any; Run of one stream
// from one thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/engine/replay/stream.h"

namespace reprise {

class ArenaKeeper {
 public:
  // An arena of more than this is large: it is given back when no replay has needed that much for
  // this time.
  static constexpr size_t kLargeBytes = size_t{512} << 20;
  static constexpr int64_t kLargeIdleNs = 60'000'000'000;
  // Memory that data decide is given back when no replay has needed half of it for this time.
  static constexpr int64_t kDataIdleNs = 3'000'000'000;

  // `on_release` is called after a stream gave its memory back.
  explicit ArenaKeeper(
      const Clock& clock, std::function<void()> on_release = [] {});
  ~ArenaKeeper();
  ArenaKeeper(const ArenaKeeper&) = delete;
  ArenaKeeper& operator=(const ArenaKeeper&) = delete;

  // Before anything else is called.
  void Add(std::unique_ptr<Stream> stream);
  size_t size() const { return lanes_.size(); }

  // Sets a time; the shortest of all counts, and 0 sets none.
  void ReleaseAfter(int64_t idle_ns);

  // Calls `work` with stream number `i`, whose memory stays until it returns.
  void Run(size_t i, const std::function<void(Stream&)>& work);
  // Gives back the memory of streams on which nothing runs: others need it now.
  void ReleaseUnused();
  // Calls Stream::Touch of every stream.
  void Touch(size_t bytes);
  // Returns the sum over all streams: see Stream::held_bytes.
  int64_t held_bytes() const;

  // Gives back the memory of streams that were idle for long enough. Returns the time at which to
  // ask again, INT64_MAX if only work can change that. Called by a thread of the keeper's own.
  int64_t ReleaseIdle();

 private:
  // A stream, and its holder: work, or the one that gives back its memory. It is no mutex: the work
  // itself may ask whether others have theirs.
  class Lane {
   public:
    std::unique_ptr<Stream> stream;
    std::atomic<int64_t> used_ns{0};
    std::atomic<int64_t> large_ns{0};  // when a replay needed a large arena
    std::atomic<int64_t> data_ns{0};   // when data decided about most of it

    void Take();
    bool TryTake();
    void Leave();

   private:
    Mutex mutex_;
    CondVar left_;
    bool taken_ GUARDED_BY(mutex_) = false;
  };
  // A lane that is taken, for the time of a block.
  class Taken {
   public:
    explicit Taken(Lane& lane) : lane_(lane) {}
    ~Taken() { lane_.Leave(); }
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;

   private:
    Lane& lane_;
  };
  // Returns the lanes so far: the keeper's thread looks while they are.
  std::vector<Lane*> Lanes() const;
  void Used(Lane& lane, size_t bytes);
  // Returns when the lane's memory is to go back; INT64_MAX: it holds none that is.
  int64_t DueNs(const Lane& lane) const;
  void Work();

  // Constant after construction.
  const Clock& clock_;
  const std::function<void()> on_release_;
  // Self-synchronised.
  std::atomic<int64_t> idle_ns_{0};  // 0: never
  std::atomic<bool> asleep_{false};  // the thread waits for work
  // Guarded. Lanes are added before any of them runs work, which then needs no lock.
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  CondVar changed_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace reprise
