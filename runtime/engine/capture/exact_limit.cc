#include "runtime/engine/capture/exact_limit.h"

namespace reprise {

bool IsOneTooMany(const Model& model, OnMiss on_miss, const RecipeKey& key,
                  const RecipeCache& cache) {
  if (on_miss != OnMiss::kDefault || model.options().capture != CapturePolicy::kQuick) return false;
  ModelOwner& owner = *model.owner();
  const bool wanted_before = owner.WantedBefore(key.hash);
  if (cache.NumExact(owner) < owner.max_exact()) return false;
  return !wanted_before || !owner.AdmitExactRecipe();
}

}  // namespace reprise
