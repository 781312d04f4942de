// Recipes of the engine -> messages, for people and tools.
#pragma once

#include "proto/admin.pb.h"
#include "runtime/engine/engine.h"

namespace reprise {

void EncodeRecipeInfo(const CachedRecipe& cached, v1::RecipeInfo& message);

// `include_constants`: also the bytes of the constants.
void EncodeRecipe(const Recipe& recipe, bool include_constants,
                  reprise::recipe::v1::Recipe& message);

}  // namespace reprise
