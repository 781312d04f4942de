// SpokenRules: which tokens may follow in a window's answer, and how likely the ones drawn are.
//
// As in OpenAI's Whisper, log-probabilities are those of the scores that the rules leave.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/sequences/token_constraint.h"
#include "server/speech/time_rules.h"

namespace reprise {

class SpokenRules : public TokenConstraint {
 public:
  // `times`: nullopt where the answer has none. `logprobs` becomes the sum of the tokens'.
  SpokenRules(std::optional<TimeRules> times, std::shared_ptr<double> logprobs)
      : times_(std::move(times)), logprobs_(std::move(logprobs)) {}

  absl::Status Restrict(absl::Span<float> scores) override;
  absl::StatusOr<bool> Take(int64_t id) override;

 private:
  std::optional<TimeRules> times_;
  const std::shared_ptr<double> logprobs_;
  std::vector<float> left_;  // the scores of the draw
};

}  // namespace reprise
