// Sampling: from the scores of a token to the next one.
//
// A draw depends on the scores, on the sequence's own tokens and on its seed alone:
// draw number n of a seed is the same number whatever else runs.
//
// Threads: a Sampler belongs to one caller at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/sequences/token_constraint.h"

namespace reprise {

struct SamplingOptions {
  int64_t max_tokens = 16;
  int64_t min_tokens = 0;  // stop ids are not drawn before
  float temperature = 1;   // 0: the best one is taken
  float top_p = 1;
  int64_t top_k = 0;  // 0 or below: all
  float min_p = 0;
  float repetition_penalty = 1;  // counts prompt and answer
  float presence_penalty = 0;    // counts the answer alone
  float frequency_penalty = 0;
  std::optional<uint64_t> seed;
  std::vector<int64_t> stop_ids;
  bool ignore_eos = false;
  std::map<int64_t, float> logit_bias;
  std::vector<int64_t> allowed_ids;  // the only ones that are drawn; empty: all
  int64_t logprobs = -1;             // alternatives told with each token; -1: not even its own
  int64_t n = 1;                     // answers
  // Settle makes them of logit_bias, which is empty then; at most one for each id.
  std::vector<std::pair<int64_t, float>> biases = {};

  // Makes them ready to draw by: lists ascend and have each id once, the model's own ids that end
  // answers, `eos`, are among the stop ids unless these are ignored. INVALID_ARGUMENT naming the
  // parameter, its value and its range, or the length of a list that is longer than the vocabulary.
  absl::Status Settle(int64_t vocabulary, absl::Span<const int64_t> eos);
  // Returns, once settled, INVALID_ARGUMENT where the lists leave no id below `ids` to draw.
  // `never`: ids that the model never draws; `stops_too`: those that end the answer are among them.
  absl::Status CheckAnyLeft(int64_t ids, absl::Span<const int64_t> never, bool stops_too) const;
  // Returns, once settled, whether `id` ends an answer.
  bool IsStop(int64_t id) const;
};

struct TokenLogprob {
  int64_t id = 0;
  float logprob = 0;
};

struct SampledToken {
  int64_t id = 0;
  float logprob = 0;               // the model's own; set where requested
  std::vector<TokenLogprob> best;  // the best ones by these, best first
};

class Sampler {
 public:
  // `options` are settled, and shared by the answers of a request; `stream` tells these apart.
  Sampler(std::shared_ptr<const SamplingOptions> options, uint64_t stream);

  // Adds a token of the prompt: penalties count it.
  void AddPrompt(int64_t id);
  // Draws the next token; `forced`: this one, whatever scores and options say; `constraint`: says
  // which tokens may follow, null: all may. `scores` are changed. DATA_LOSS where scores are no
  // numbers or all of them are -inf, INVALID_ARGUMENT where the options leave none of them.
  absl::StatusOr<SampledToken> Draw(absl::Span<float> scores,
                                    std::optional<int64_t> forced = std::nullopt,
                                    TokenConstraint* constraint = nullptr);

  // Returns `id` with the log-probabilities that a draw by `scores` would tell.
  SampledToken Score(absl::Span<const float> scores, int64_t id) const {
    SampledToken token = {.id = id};
    TellLogprobs(scores, token);
    return token;
  }

  bool IsStop(int64_t id) const { return options_->IsStop(id); }
  const SamplingOptions& options() const { return *options_; }
  int64_t drawn() const { return drawn_; }

 private:
  void TellLogprobs(absl::Span<const float> scores, SampledToken& token) const;
  // Leaves the scores of allowed ids alone.
  void Restrict(absl::Span<float> scores) const;
  void Penalise(absl::Span<float> scores) const;
  // `highest`: the highest of all scores.
  int64_t Choose(absl::Span<float> scores, float highest);
  double NextUniform();

  const std::shared_ptr<const SamplingOptions> options_;
  const uint64_t stream_;
  const bool penalises_;
  // Whether in the prompt; times in the answer. Empty where nothing is penalised.
  std::map<int64_t, std::pair<bool, int64_t>> seen_;
  int64_t drawn_ = 0;
};

}  // namespace reprise
