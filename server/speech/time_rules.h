// TimeRules: which tokens may follow in a transcript with times, as OpenAI's Whisper and
// transformers (WhisperTimeStampLogitsProcessor) have it.
//
// Times come in pairs, except for the last; they do not go back; a transcript begins with one,
// which is no later than max_initial_timestamp_index; and a time follows where all times together
// are likelier than any text.
//
// Threads: one at a time.
#pragma once

#include <cstdint>

#include "runtime/sequences/token_constraint.h"
#include "server/hub/speech_files.h"

namespace reprise {

class TimeRules : public TokenConstraint {
 public:
  explicit TimeRules(const SpeechFacts& facts)
      : end_(facts.end),
        no_times_(facts.no_timestamps),
        first_(facts.first_time()),
        most_initial_(facts.max_initial_time) {}

  absl::Status Restrict(absl::Span<float> scores) override;
  absl::StatusOr<bool> Take(int64_t id) override;

 private:
  bool IsTime(int64_t id) const { return id >= first_; }

  // Constant after construction.
  const int64_t end_, no_times_, first_, most_initial_;
  // The tokens so far.
  int64_t count_ = 0;
  bool last_is_time_ = false, one_before_is_time_ = false;
  int64_t latest_ = -1;  // the last time
};

}  // namespace reprise
