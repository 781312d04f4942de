// A captured recipe as a record of the recipe store, from which a start makes it again without
// running a pass.
//
// The record keeps the graph as the passes left it, and the kernel chosen for each node. A recipe
// bound from these has the same launches: no weight is in it, so it also serves new weights of the
// same graph. Everything that the graph depends on is in the key, and compared in full.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/recipe/compiler.h"
#include "runtime/recipe/record_name.h"

namespace reprise {

// `origin`: the name of the model that has it stored.
RecordName RecordNameOf(const RecipeKey& key, absl::string_view origin);

std::string EncodeRecipe(const Recipe& recipe, const CompiledPlan& plan);

// Returns DATA_LOSS for bytes that are no recipe, FAILED_PRECONDITION for a recipe of another key.
absl::StatusOr<CompiledPlan> DecodeRecipe(absl::string_view bytes, const RecipeKey& key);

// A record as read from its bytes alone. Its key cannot be compared, since that needs the model: so
// it is for people who look at a recipe, and never answers requests.
struct DetachedRecipe {
  CompiledPlan plan;
  RecipeKey key;  // lacks the text of its graph
  std::string model;
  int64_t version = 0;
  std::string bucket;
  std::string binding;  // its sizes, each under the user's name of the axis
};
// Returns DATA_LOSS for bytes that are no recipe.
absl::StatusOr<DetachedRecipe> DetachRecipe(absl::string_view bytes);

}  // namespace reprise
