// CaptureRecipe: the walk of a capture on one thread: take from the recipe store or compile,
// prepare parameters, prime, publish.
//
// A recipe is primed by one replay before the cache makes it visible.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "runtime/engine/replay/stream.h"
#include "runtime/engine/types/capture_target.h"
#include "runtime/engine/types/engine_options.h"
#include "runtime/engine/types/miss_report.h"
#include "runtime/recipe/cache.h"

namespace reprise {

class Model;
class ParameterTable;

struct CaptureResult {
  std::shared_ptr<const Recipe> recipe;
  RecipeCache::Outcome outcome = RecipeCache::Outcome::kHit;
  // The record of the capture that made the recipe: complete but for its waiters. None where the
  // recipe store had the recipe.
  std::optional<MissRecord> record;
};

// Under the cache's single flight: one of the threads that ask for a key captures, the others wait.
// Errors: as Compile, and RESOURCE_EXHAUSTED where the stream's or the cache's memory is too small.
absl::StatusOr<CaptureResult> CaptureRecipe(const EngineOptions& options, RecipeCache& cache,
                                            const Model& model, const CaptureTarget& target,
                                            Stream& stream);

// Runs one small replay of `recipe` on `stream`, with inputs that are in range, so that everything
// is there when the first request comes. RESOURCE_EXHAUSTED where the stream's memory is too small.
// `go_on`: as CaptureTarget has it.
absl::Status PrimeRecipe(const Recipe& recipe, const ParameterTable& parameters, Stream& stream,
                         const std::function<absl::Status()>& go_on = nullptr);

}  // namespace reprise
