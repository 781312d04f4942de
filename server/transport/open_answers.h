// OpenAnswers: how many answers a face was given and has not sent yet. A client that reads slowly
// keeps its answer open for seconds, long after the request has left the queues.
//
// Threads: all methods are safe from any thread.
#pragma once

#include <chrono>
#include <cstdint>

#include "runtime/base/mutex.h"

namespace reprise {

class OpenAnswers {
 public:
  void Begin();
  void End();
  // Notes that a call was refused.
  void Note();
  // Returns whether none is open, and no answer ended and no call was refused for `quiet`, or when
  // `timeout` is over and none is open; false when one is open then.
  bool WaitUntilQuiet(std::chrono::nanoseconds quiet, std::chrono::nanoseconds timeout);

 private:
  Mutex mutex_;
  CondVar none_;
  int64_t open_ GUARDED_BY(mutex_) = 0;
  // When the last one ended, or a call was refused.
  std::chrono::steady_clock::time_point ended_ GUARDED_BY(mutex_);
};

}  // namespace reprise
