// Tuner: after a quick capture, times the kernels that its recipe could have, and puts a recipe
// with the fastest ones in its place.
//
// A capture takes kernels that are known or usual, so that no request waits for a measurement.
// Where some of them were never timed the recipe is queued here; on a thread of the CapturePool,
// held back while replays run (BackgroundThrottle), the candidates of each open question are timed
// on the recipe's own parameters and in scratch memory. The answers are remembered for all recipes
// and models (KernelChoices) and written to the recipe store; then the recipe is compiled once more
// with them, primed, and exchanged in the cache. Replays that hold the old one are not disturbed.
//
// Frozen models, models with tuning switched off (ModelOptions::tune), sections after a cut and
// variants of a model are not tuned. When a recipe's turn comes: see TuningQueue.
//
// Threads: all methods from any.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/engine/tune/tuning_queue.h"
#include "runtime/engine/types/engine_options.h"
#include "runtime/recipe/cache.h"
#include "runtime/recipe/kernel_choices.h"

namespace reprise {

class Model;
class BackgroundThrottle;
class Stream;

class Tuner {
 public:
  // All outlive the object, which outlives the jobs of options.captures.
  Tuner(const EngineOptions& options, RecipeCache& cache, KernelChoices& choices)
      : options_(options), cache_(cache), choices_(choices) {}

  // Reads the choices that earlier starts have timed from the recipe store.
  void ReadChoices();

  // Queues `recipe`, which `model` captured or replays and which has kernels that were never timed,
  // if it is to be tuned and is not queued yet. Cheap where everything is known.
  void Want(const Model& model, const Recipe& recipe);

 private:
  bool MayTune(const Model& model, const Recipe& recipe) const;
  void Run(const std::weak_ptr<const Model>& model, const RecipeKey& key, int64_t asked_ns,
           Stream* stream);
  // Tunes it. Returns false where the recipe is gone or the work was stopped.
  absl::StatusOr<bool> Tune(const Model& model, const std::shared_ptr<const Recipe>& recipe,
                            Stream& stream, BackgroundThrottle& throttle);
  void KeepChoices() const;

  // Constant after construction.
  const EngineOptions& options_;
  RecipeCache& cache_;
  KernelChoices& choices_;
  // Self-synchronised.
  TuningQueue queue_;
};

}  // namespace reprise
