// IsOneTooMany: whether a shape has to come again before it gets a recipe.
#pragma once

#include "runtime/engine/model/model.h"
#include "runtime/recipe/cache.h"

namespace reprise {

// Returns whether `model` has as many recipes of exact shapes as it may, and `key`, which names
// another, was not wanted before: a shape that comes once would only drive out shapes that come
// again. From the second time on it makes room for itself, unless shapes do so all the time
// (exact_cache_admission.h). Never so where the request or the model's configuration sets a policy
// for a missing recipe. Takes note of the key. Threads: any.
bool IsOneTooMany(const Model& model, OnMiss on_miss, const RecipeKey& key,
                  const RecipeCache& cache);

}  // namespace reprise
