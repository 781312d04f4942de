// StepPlan: which tokens of which sequences one step computes.
//
// One token of each sequence that goes on, then chunks of prompts within what is left of the
// budget. While sequences go on, prompts get no more tokens in a step than are computed within the
// stall that these may have. Keys share both by their weights, where a step has not enough for all;
// one key's unused tokens go to the others. Sequences of one key are served oldest first.
//
// Threads: pure.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/generate/sequence.h"

namespace reprise {

struct StepItem {
  Sequence* sequence = nullptr;
  int64_t count = 0;  // tokens: the first missing ones, and after all of these its draft
  int64_t picks = 0;  // the number of its last tokens whose scores are requested
};

struct StepLimits {
  int64_t tokens = 512;         // the most that a step computes
  int64_t stalling_tokens = 0;  // the most of prompts while other sequences go on
  int64_t picks = 64;
};

// The result of PlanStep. `running`: in the order in which they are served. `make_room`: whether
// there are pages for that many more tokens of a sequence; it may preempt others, which
// `is_dropped` tells then. `use`: of the keys, to whose shares the step is added.
struct PlannedStep {
  std::vector<StepItem> items;
  int64_t tokens = 0;
  int64_t prompt_tokens = 0;
  bool mixed = false;  // sequences that go on wait for prompts
};
PlannedStep PlanStep(const std::vector<Sequence*>& running, const StepLimits& limits,
                     const std::function<bool(Sequence&, int64_t count)>& make_room,
                     const std::function<bool(const Sequence&)>& is_dropped, SharedUse& use);

}  // namespace reprise
