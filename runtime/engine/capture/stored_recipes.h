// Functions that ask the recipe store before a capture, and tell it after one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/engine/types/capture_target.h"
#include "runtime/engine/types/engine_options.h"
#include "runtime/engine/types/observer.h"
#include "runtime/recipe/compiler.h"
#include "runtime/recipe/record_file.h"

namespace reprise {

class Model;

// The store has recipes of this target, or may get them: a variant of a model is not kept.
bool IsKept(const EngineOptions& options, const CaptureTarget& target);

// Null where the store does not have the recipe, whatever is wrong with its file: `miss` then says
// why, and the log does. Not primed; without its note.
struct RestoredRecipe {
  std::unique_ptr<Recipe> recipe;
  StoreMiss miss = StoreMiss::kAbsent;
};
RestoredRecipe RestoreRecipe(const EngineOptions& options, const Model& model,
                             const CaptureTarget& target);

// Reads what an eager run has prepared for `target` before, whichever graph that is of; null where
// the store has nothing that can be used. Counts nothing: nobody waits for it.
std::unique_ptr<Recipe> RestoreEager(const EngineOptions& options, const Model& model,
                                     const CaptureTarget& target);

// Queues a captured recipe to be written. `capture_ns`: what making it again would take.
void KeepRecipe(const EngineOptions& options, const Model& model, const Recipe& recipe,
                const CompiledPlan& plan, int64_t capture_ns);

// The causes for which the store has `target` for another graph of the model alone: what is told of
// a capture with the reason graph_changed. Empty where no record says.
std::vector<std::string> StoredGraphCauses(const EngineOptions& options, const Model& model,
                                           const CaptureTarget& target);

// The reason of a capture that a stored recipe would have spared, had it not been for `miss`.
std::optional<CompileReason> ReasonOf(StoreMiss miss);

}  // namespace reprise
