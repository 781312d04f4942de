// KeyShare: what the requests of one key have of a generator: places, and tokens of prompts.
//
// Requests of several keys are served by shares: the key that has the least, by its weight, is
// next. Priorities order the requests of one key alone.
//
// Threads: `weight` from any; `waiting` is guarded by the generator's mutex; what else it has is
// used by the thread that steps alone.
#pragma once

#include <atomic>
#include <cstdint>

namespace reprise {

struct KeyShare {
  std::atomic<double> weight{1};
  int64_t waiting = 0;       // sequences, as last counted, and requests that came since
  int64_t running = 0;       // sequences, as last counted
  double prompt_tokens = 0;  // that were computed, by its weight

  // Returns the sequences that it has, and `more`, by its weight.
  double Load(int64_t more = 0) const { return static_cast<double>(running + more) / weight; }
};

}  // namespace reprise
