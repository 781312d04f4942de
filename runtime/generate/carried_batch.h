// CarriedBatch: requests with a client-managed KV cache, step by step, and their answers.
//
// Ownership: borrows the requests. Threads: one at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/engine/types/request.h"
#include "runtime/ops/attention/paged.h"
#include "runtime/passes/paged/decoder.h"
#include "runtime/recipe/recipe.h"

namespace reprise {

class CarriedBatch {
 public:
  // Positions among a model's inputs and outputs, and sizes.
  struct Layout {
    int ids = 0;
    const std::vector<int>& caches;    // inputs
    int logits = 0;                    // output
    const std::vector<int>& presents;  // the cache of each output: see FindPresents
    const std::vector<DecoderCache>& sizes;
    int64_t vocabulary = 0;
    DType dtype = DType::kFloat32;         // the caches' dtype: float32 or float16
    DType logits_dtype = DType::kFloat32;  // the same of scores
  };
  // Makes room for all answers.
  CarriedBatch(const Layout& layout, absl::Span<const Request* const> requests);

  int64_t rows() const { return static_cast<int64_t>(rows_.size()); }
  int64_t tokens() const { return tokens_; }
  int64_t cache_bytes() const { return cache_bytes_; }

  // Goes on to the next tokens, at most `most` of them; false: all are computed.
  bool Next(int64_t most);
  int64_t step_tokens() const { return static_cast<int64_t>(step_.size()); }
  // Writes the inputs of the step's replay.
  void Fill(const Recipe& recipe, std::byte* base) const;
  // Takes the scores of the step's tokens, in order.
  void TakeScores(const float* scores);
  std::vector<Response> Finish(const absl::Status& status, const ReplayInfo& info);

 private:
  // One row of a request: a sequence.
  struct Row {
    size_t request = 0;
    int64_t row = 0;   // its place in the request
    int64_t done = 0;  // its new tokens that are computed, or in this step
    int64_t count = 0;
    std::vector<ops::CarriedCache> caches;
    ops::CarriedSequence sequence;
  };
  struct StepToken {
    size_t row = 0;
    int64_t token = 0;  // its place in the row
    ops::CarriedToken carried;
  };

  void AddRequest(const Layout& layout, size_t request);

  const Layout layout_;
  const absl::Span<const Request* const> requests_;
  std::vector<Response> responses_;
  std::vector<Row> rows_;
  std::vector<StepToken> step_;
  int64_t tokens_ = 0, cache_bytes_ = 0;
};

}  // namespace reprise
