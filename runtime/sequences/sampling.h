// Sampling: from the scores of a token to the next one.
//
// A draw hangs on the scores, on the sequence's own tokens and on its seed alone: draw
// number n of a seed is the same number whatever else runs.
//
// Threads: a Sampler belongs to one caller at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

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

  // INVALID_ARGUMENT naming the parameter, its value and its range.
  absl::Status Check(int64_t vocabulary) const;
};

struct TokenLogprob {
  int64_t id = 0;
  float logprob = 0;
};

struct SampledToken {
  int64_t id = 0;
  float logprob = 0;               // that of the model's own scores; set where asked for
  std::vector<TokenLogprob> best;  // the best ones by these, best first
};

class Sampler {
 public:
  // `stops`: ids that end an answer, those of the model included. `stream` tells the answers of one
  // request apart.
  Sampler(SamplingOptions options, std::vector<int64_t> stops, uint64_t stream);

  // A token of the prompt: penalties count it.
  void AddPrompt(int64_t id);
  // The next token. `allowed`: the only ids that may be drawn, beside what the options say; empty:
  // all. `scores` are changed.
  // DATA_LOSS where scores are no numbers or none is left to draw from.
  absl::StatusOr<SampledToken> Draw(absl::Span<float> scores,
                                    absl::Span<const int64_t> allowed = {});

  bool IsStop(int64_t id) const;
  const SamplingOptions& options() const { return options_; }
  int64_t drawn() const { return drawn_; }

 private:
  void TellLogprobs(absl::Span<const float> scores, SampledToken& token) const;
  static void Restrict(absl::Span<const int64_t> allowed, absl::Span<float> scores);
  void Penalise(absl::Span<float> scores) const;
  // `highest`: that of all scores.
  int64_t Choose(absl::Span<float> scores, float highest);
  double NextUniform();

  const SamplingOptions options_;
  const std::vector<int64_t> stops_;
  const uint64_t stream_;
  std::map<int64_t, std::pair<bool, int64_t>> seen_;  // whether in the prompt; times in the answer
  int64_t drawn_ = 0;
  std::vector<std::pair<float, int64_t>> candidates_;
};

}  // namespace reprise
