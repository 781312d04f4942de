// The answers of a request for tokens as messages of the inference protocol.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "proto/grpc_service.pb.h"
#include "server/generate/token_calls.h"

namespace reprise {

// Fills in one event: outputs token_ids i64[1, k] and, where they are asked for, logprobs f32[1, k]
// and the alternatives of each token, best first: top_ids i64[1, k, m] and top_logprobs f32[1, k,
// m]; text_output BYTES[1] where texts are told;
// parameters say which answer it is of and why that ended. `event` is no error.
void FillTokenAnswer(const TokenCallInfo& info, const GenerationEvent& event, const TokenText& text,
                     inference::ModelInferResponse& message);

// All events of a call, put together.
class WholeTokenAnswer {
 public:
  // Returns whether the event was the last one.
  bool Add(const GenerationEvent& event, const TokenText& text);
  const absl::Status& status() const { return status_; }
  struct Answer {
    std::vector<SampledToken> tokens;
    std::string text;
    std::optional<std::string> stop;  // the text that ended it
    Ending finish = Ending::kGoesOn;
  };
  const std::vector<Answer>& answers() const { return answers_; }
  int64_t cached_tokens() const { return cached_tokens_; }
  const GenerationWait& wait() const { return wait_; }

  // Outputs [answers, k] and [answers, k, m]: a shorter answer ends with ids of -1; text_output
  // BYTES[answers].
  void Fill(const TokenCallInfo& info, inference::ModelInferResponse& message) const;

 private:
  std::vector<Answer> answers_;
  absl::Status status_;
  int64_t cached_tokens_ = 0;
  GenerationWait wait_;
};

}  // namespace reprise
