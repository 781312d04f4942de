// Looks recipes up in the recipe store before a capture, and queues them for it after one.
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

// Returns whether the store has recipes of this target, or may get them: a variant of a model is
// not kept.
bool IsKept(const EngineOptions& options, const CaptureTarget& target);

// Reads a recipe. Null where the store does not have it, or its file is unusable: `miss` then says
// why, and the log does. Not primed; without its note.
struct RestoredRecipe {
  std::unique_ptr<Recipe> recipe;
  StoreMiss miss = StoreMiss::kAbsent;
};
RestoredRecipe RestoreRecipe(const EngineOptions& options, const Model& model,
                             const CaptureTarget& target);

// Reads the preparations of an earlier eager run for `target`, of any graph; null where the store
// has nothing that can be used. Counts nothing: no request waits for it.
std::unique_ptr<Recipe> RestoreEager(const EngineOptions& options, const Model& model,
                                     const CaptureTarget& target);

// Queues a captured recipe to be written. `capture_ns`: the time that making it again would take.
void KeepRecipe(const EngineOptions& options, const Model& model, const Recipe& recipe,
                const CompiledPlan& plan, int64_t capture_ns);

// Returns the causes for which the store has `target` for another graph of the model alone: they
// are reported with a capture of the reason graph_changed. Empty where no record says.
std::vector<std::string> StoredGraphCauses(const EngineOptions& options, const Model& model,
                                           const CaptureTarget& target);

// Returns the reason of a capture that a stored recipe would have spared, had it not been for
// `miss`.
std::optional<CompileReason> ReasonOf(StoreMiss miss);

}  // namespace reprise
