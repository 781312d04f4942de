// UsageKeeper: records how much recipes are used, and reads the record at the next start.
//
// Threads: all methods from any. Save takes a lock in the store's folder and writes a file: not on
// the path of a request.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/bucket/policy.h"
#include "runtime/engine/traffic/model_usage.h"
#include "runtime/engine/types/engine_options.h"
#include "runtime/recipe/cache.h"

namespace reprise {

class Model;

class UsageKeeper {
 public:
  enum class When {
    kNow,         // everything that is new
    kWorthwhile,  // a recipe that was not known, or twice as many uses as were written
  };

  // Both outlive the object.
  UsageKeeper(const EngineOptions& options, const RecipeCache& cache)
      : options_(options), cache_(cache) {}

  // Adds the uses since the last time to the uses in the store. Does nothing without one that can
  // be written.
  void Save(const Model& model, When when);
  void Forget(const Model& model);

 private:
  using Uses = std::map<uint64_t, uint64_t>;  // keyed by key of the recipe's record

  // Constant after construction.
  const EngineOptions& options_;
  const RecipeCache& cache_;
  // Guarded.
  Mutex mutex_;
  std::map<const Model*, Uses> saved_ GUARDED_BY(mutex_);
};

// Returns the sizes of the recipes that were used before this start and are buckets, or exact
// shapes, of the model now: the most used first.
std::vector<AxisSizes> UsedBefore(const Model& model);

}  // namespace reprise
