// StepRunner: the replay of a step: ids, positions and tables of pages in, scores out.
//
// Owns the stream and the recipes of the steps. A replay captures nothing and allocates nothing.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/engine/replay/stream.h"
#include "runtime/generate/step_plan.h"
#include "runtime/generate/step_recipes.h"

namespace reprise {

class StepRunner {
 public:
  StepRunner(std::unique_ptr<Stream> stream, StepRecipes recipes, int64_t vocabulary)
      : stream_(std::move(stream)), recipes_(std::move(recipes)), vocabulary_(vocabulary) {}

  // Returns the scores of the picked tokens, [picks, vocabulary], in the order of the items; the
  // caller may change them, and they stay until the next call. The pages must have room for the
  // step's tokens. `collective`: the other ranks that compute the step; null: there are none.
  absl::StatusOr<absl::Span<float>> Run(const PlannedStep& step, Collective* collective = nullptr);

  const StepRecipes& recipes() const { return recipes_; }
  int64_t vocabulary() const { return vocabulary_; }

 private:
  void FillInputs(const PlannedStep& step, const StepRecipe& recipe);

  const std::unique_ptr<Stream> stream_;
  const StepRecipes recipes_;
  const int64_t vocabulary_;
};

}  // namespace reprise
