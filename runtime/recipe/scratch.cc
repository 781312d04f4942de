#include "runtime/recipe/scratch.h"

#include <algorithm>

namespace reprise {

size_t BytesInFrontOfScratch(const Recipe& recipe) {
  size_t arena = recipe.arena_bytes;
  for (size_t launch = 0; launch < recipe.launches.size(); ++launch) {
    for (size_t i = 0; i < recipe.operand_notes[launch].size(); ++i) {
      if (recipe.operand_notes[launch][i].role != OperandNote::Role::kWorkspace) continue;
      arena = std::min<size_t>(arena, recipe.launches[launch].operands[i].offset);
    }
  }
  return recipe.input_bytes + recipe.output_bytes + arena;
}

}  // namespace reprise
