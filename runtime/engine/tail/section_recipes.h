// SectionRecipes: the recipes that the pieces of a tail run on, for one request.
//
// A section with products or layers has recipes of the engine's cache, at the shapes that arrive,
// rounded up where that is proved safe (SectionPadding). One that is missing is captured here, on
// the request's thread, or only prepared (EagerCache) where the request may not wait for a capture;
// a larger one that is ready serves, and the missing one is captured later. Light sections and
// nodes at cuts are always prepared: no count in the data makes a recipe of them.
//
// Ownership: borrows everything for the length of one run. Threads: the stream's caller.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/base/hash_map.h"
#include "runtime/engine/capture/captures.h"
#include "runtime/engine/model/eager_cache.h"
#include "runtime/engine/model/model.h"
#include "runtime/engine/model/tail.h"
#include "runtime/engine/replay/stream.h"
#include "runtime/engine/types/engine_options.h"
#include "runtime/engine/types/miss_report.h"
#include "runtime/engine/types/run_control.h"

namespace reprise {

// The surroundings in which a run of a tail works. Everything outlives it.
struct TailContext {
  const EngineOptions& options;
  RecipeCache& cache;
  EagerCache& eager;
  Captures& captures;
  MissReport& misses;
  const Model& model;
  const Tail& tail;
  const RequestShape& shape;  // the request's
  Stream& stream;
  RunControl& control;
};

class SectionRecipes {
 public:
  // By name: the values that pieces hand each other. A name means one value, in whichever branch it
  // is made.
  using Values = HashMap<std::string, Tensor>;
  using RecipePtr = std::shared_ptr<const Recipe>;

  explicit SectionRecipes(const TailContext& context) : context_(context) {}

  // The recipe that `section` runs on for `values`.
  struct Choice {
    RecipePtr recipe;
    // The sizes of an answer, where the recipe has the sizes that arrived or larger ones. Absent:
    // as in the recipe.
    std::optional<SectionPadding::Fitted> fitted;
  };
  // Returns a recipe from the cache, captured now, or prepared. FAILED_PRECONDITION where the
  // request rejects a recipe that is not ready. `pad`: sizes may be rounded up.
  absl::StatusOr<Choice> Find(const GraphSection& section, const Values& values, bool pad = true);

  // Returns one without a capture: prepared before, or now.
  absl::StatusOr<RecipePtr> Prepare(const GraphSection& section, const Values& values);

  // Returns how the request came by them, the least usual.
  CaptureOutcome outcome() const { return outcome_; }

 private:
  // Returns the target for the sizes that arrived; `typed` receives the facts about the section.
  CaptureTarget TargetOf(const GraphSection& section, const Values& values,
                         std::shared_ptr<const Tail::TypedSection>* typed = nullptr) const;
  RecipePtr Larger(const CaptureTarget& target, const SectionPadding::Fitted& fitted);
  absl::StatusOr<RecipePtr> Miss(const CaptureTarget& target);
  absl::StatusOr<RecipePtr> Prepare(const CaptureTarget& target);
  void Note(CaptureOutcome outcome);

  const TailContext& context_;
  CaptureOutcome outcome_ = CaptureOutcome::kReplayed;
};

}  // namespace reprise
