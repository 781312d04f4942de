// KeyShare: the places and the tokens of steps that the requests of one key have of a generator.
//
// Requests of several keys are served by shares: the key that has the least, by its weight, is
// next. Priorities order the requests of one key alone.
//
// Threads: `weight` from any; `waiting` is guarded by the generator's mutex; the thread that steps
// uses the others alone.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/base/weighted_share.h"

namespace reprise {

struct KeyShare {
  std::atomic<double> weight{1};
  int64_t waiting = 0;                  // sequences, as last counted, and requests that came since
  int64_t running = 0;                  // sequences, as last counted
  int64_t sequences = 0;                // those and waiting ones, while they are counted
  int64_t step_tokens = 0;              // tokens in the last step
  WeightedShare use;                    // its tokens that were computed
  WeightedShare* all_models = nullptr;  // its time in the steps of all models; null: see StepGate

  // Returns the sequences that it has, and `more`, by its weight.
  double Load(int64_t more = 0) const { return static_cast<double>(running + more) / weight; }
};

}  // namespace reprise
