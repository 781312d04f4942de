// CarriedSteps: requests with a client-managed KV cache, on the recipes of the steps.
//
// A request with past keys and values becomes rows of a step like any sequence of the server: its
// tables point to the cache in the request. A launch writes the past and the new rows once, to the
// outputs of the answer, and attention reads them there in the order of sums of pages. So the
// length of the past is in no key and captures nothing, and the scores equal the scores of a
// sequence that the server holds. All requests of a batch are computed together, a few tokens at a
// time.
//
// Ownership: borrows the recipes; shares the model. Threads: constant; a stream is one caller's.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/clock.h"
#include "runtime/base/stop_flag.h"
#include "runtime/engine/model/model.h"
#include "runtime/engine/replay/stream.h"
#include "runtime/engine/types/request.h"
#include "runtime/generate/step_recipes.h"
#include "runtime/passes/paged/decoder.h"

namespace reprise {

// The work of a batch.
struct CarriedCounts {
  int64_t tokens = 0;
  int64_t bytes = 0;  // keys and values that were written to answers
};

class CarriedSteps {
 public:
  struct Limits {
    int64_t context = 0;     // positions of a sequence
    int64_t vocabulary = 0;  // scores of a token
    int64_t ids = 0;         // those below are the model's
  };
  // UNIMPLEMENTED naming the input or output that keeps the model's requests from it; else the
  // cache of each output (see FindPresents).
  static absl::StatusOr<std::vector<int>> CheckModel(const Model& model, const Graph& symbolic,
                                                     const Decoder& decoder);
  // Errors as of CheckModel.
  static absl::StatusOr<std::unique_ptr<CarriedSteps>> Make(
      std::shared_ptr<const Model> model, const Graph& symbolic, const Decoder& decoder,
      const Limits& limits, const StepRecipes& recipes, const Clock& clock);

  // OK where the request is computed here. Otherwise why not: masks with holes, positions that do
  // not follow the past, a cache that is not read, anything that the model refuses in any case.
  absl::Status Takes(const Request& request) const;
  // New tokens of a request that it takes.
  int64_t TokensOf(const Request& request) const;
  // Returns the most tokens of one replay: the scores of all of them are needed.
  int64_t most_tokens() const { return most_tokens_; }

  // Returns one response a request, in order; all of them are taken. `stop`: as Engine::Run says.
  std::vector<Response> Run(absl::Span<const Request* const> requests, Stream& stream,
                            StopFlag* stop, CarriedCounts& counts) const;

 private:
  // Positions among the model's inputs; kAbsent: there is no such input.
  struct Inputs {
    int ids, positions, mask, last_keys, length, cache_branch;
    std::vector<int> caches;
  };
  struct Sizes {
    int64_t rows = 0, tokens = 0, past = 0;
  };

  CarriedSteps(std::shared_ptr<const Model> model, const Limits& limits, const StepRecipes& recipes,
               const Clock& clock)
      : model_(std::move(model)), limits_(limits), recipes_(recipes), clock_(clock) {}

  Sizes SizesOf(const Request& request) const;
  absl::Status CheckShapes(const Request& request, const Sizes& sizes) const;
  absl::Status CheckNumbers(const Request& request, const Sizes& sizes) const;
  // Returns the bytes of an answer: scores of each token, and caches with the new rows.
  int64_t AnswerBytes(const Sizes& sizes) const;

  const std::shared_ptr<const Model> model_;
  const Limits limits_;
  const StepRecipes& recipes_;
  const Clock& clock_;
  Decoder decoder_;
  Inputs inputs_{};
  std::vector<int> presents_;  // the cache of each output: see FindPresents
  int64_t most_tokens_ = 0;
};

}  // namespace reprise
