// RunningBatch: a batch that a stream runs: which items still wait for it, and when it must have
// ended.
//
// An item whose client is disconnected, or whose deadline has come, leaves the run and is answered
// at once; the others are computed to their end. When the last one leaves, the run is told to stop.
// One that does not end although it was told to is stuck: its stream is lost until it does.
//
// Threads: the scheduler guards all with its mutex, but for `stop`, which the stream polls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "runtime/base/stop_flag.h"
#include "runtime/batching/work.h"

namespace reprise {

// A run that has not ended, although it was told to.
struct StuckRun {
  int stream = -1;
  std::string queue;  // the name of the queue that it runs
  int64_t since_ns = 0;
};

template <typename Item>
class RunningBatch {
 public:
  StopFlag stop;
  // Items that still wait for their answer: nodes of the queue's list, so that they move without
  // memory.
  std::list<std::shared_ptr<Item>> wanted;
  int stream = -1;
  std::string name;  // its queue's name
  int64_t taken_ns = 0;
  int64_t max_ns = 0;      // time to compute; 0: no limit
  int64_t stopped_ns = 0;  // when it was told to stop; 0: it was not
  bool reported = false;   // as stuck

  void Stop(int64_t now_ns) {
    if (stopped_ns == 0) stopped_ns = std::max<int64_t>(now_ns, 1);
    stop.Stop();
  }
  // Returns whether the run is late. It ends itself at its limit, but within a launch that cannot
  // be cut.
  bool IsOverdue(int64_t now_ns) const {
    const int64_t since_ns = stop.computing_since_ns();
    return max_ns > 0 && since_ns > 0 && now_ns - since_ns > max_ns + kGraceNs;
  }
  bool IsStuck(int64_t now_ns) const { return stopped_ns > 0 && now_ns - stopped_ns >= kStuckNs; }
  // Returns when to look again, as far as that is known; kNoDeadline: only a change can make that
  // needed.
  int64_t next_ns() const {
    int64_t next = kNoDeadline;
    for (const auto& item : wanted) next = std::min(next, item->shape.end_ns);
    if (stopped_ns > 0 && !reported) next = std::min(next, stopped_ns + kStuckNs);
    return next;
  }

  // Grace period in which the run may end by itself.
  static constexpr int64_t kGraceNs = 500'000'000;
  // No run takes that long after it was told to stop: the longest launches are cut.
  static constexpr int64_t kStuckNs = 5'000'000'000;
};

}  // namespace reprise
