// Suggestion: a change that a user can make so that a capture is not made for a request again.
#pragma once

#include <optional>
#include <string>

#include "runtime/engine/types/capture_target.h"
#include "runtime/engine/types/observer.h"
#include "runtime/recipe/cache.h"

namespace reprise {

class Model;

// Returns the lines of configuration or the flag that would have avoided the capture of `target`,
// as they are to be written; "none: " and why where nothing would; empty where no request caused
// it.
// `eviction`: of a recipe of the same key.
std::string SuggestionFor(const Model& model, const CaptureTarget& target, CompileReason reason,
                          const std::optional<RecipeCache::Eviction>& eviction,
                          int64_t max_cache_bytes);

}  // namespace reprise
