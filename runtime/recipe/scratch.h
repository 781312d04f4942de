// BytesInFrontOfScratch: the part of a recipe's frame that every replay writes.
//
// Workspaces lie at the end of the arena, with room for more threads than most machines have: only
// the part that the threads of a replay use becomes memory.
#pragma once

#include <cstddef>

#include "runtime/recipe/recipe.h"

namespace reprise {

// Returns the bytes of inputs, outputs and the arena up to the workspaces, of
// Recipe::frame_bytes().
size_t BytesInFrontOfScratch(const Recipe& recipe);

}  // namespace reprise
