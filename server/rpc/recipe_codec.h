// Recipes of the engine -> messages, for people and tools.
#pragma once

#include <google/protobuf/timestamp.pb.h>

#include <chrono>

#include "proto/admin.pb.h"
#include "runtime/engine/engine.h"

namespace reprise {

google::protobuf::Timestamp EncodeTime(std::chrono::system_clock::time_point time);

void EncodeRecipeInfo(const CachedRecipe& cached, v1::RecipeInfo& message);

// `include_constants`: also the bytes of the constants.
void EncodeRecipe(const Recipe& recipe, bool include_constants,
                  reprise::recipe::v1::Recipe& message);

}  // namespace reprise
