// The processor time of the calling thread, as a clock: it stands still while others have the core.
#pragma once

#include <time.h>

#include "runtime/base/clock.h"

namespace reprise {

class ThreadCpuClock final : public Clock {
 public:
  int64_t NowNs() const override {
    timespec time = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return int64_t{1'000'000'000} * time.tv_sec + time.tv_nsec;
  }
};

}  // namespace reprise
