// MissPolicy: how a batch runs when the recipe of its bucket is not ready: on a larger one, after a
// capture, eagerly, or not at all.
//
// Ownership: borrows everything. Threads: all methods from any; a plan belongs to one caller.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "runtime/engine/batch/batch_plan.h"
#include "runtime/engine/batch/slice_prover.h"
#include "runtime/engine/capture/captures.h"
#include "runtime/engine/model/model.h"
#include "runtime/engine/traffic/missed_recipe_costs.h"
#include "runtime/engine/traffic/refused_keys.h"
#include "runtime/engine/types/capture_target.h"
#include "runtime/engine/types/capture_ticket.h"
#include "runtime/engine/types/engine_options.h"
#include "runtime/recipe/cache.h"

namespace reprise {

class MissPolicy {
 public:
  // All outlive the object, which outlives the captures that it begins.
  MissPolicy(const EngineOptions& options, RecipeCache& cache, Captures& captures,
             const SliceProver& slices)
      : options_(options), cache_(cache), captures_(captures), slices_(slices) {}

  // Returns the recipe or the error that `plan` gets without a capture; undecided where it needs
  // one.
  BatchPlan::Resolution Resolve(const BatchPlan& plan);
  // See Engine::Prepare.
  std::shared_ptr<CaptureTicket> Prepare(BatchPlan& plan, std::function<void(absl::Status)> ready);
  // Returns whether a capture may begin for the requests of `plan`.
  bool MayCaptureFor(const BatchPlan& plan) const;
  // Returns FAILED_PRECONDITION: the missing recipe, why it is not captured, and the nearest that
  // is ready.
  absl::Status Refusal(const BatchPlan& plan) const;

  // See Engine::CaptureAhead.
  void CaptureAhead(const Model& model, const AxisSizes& sizes, CompileReason reason,
                    CaptureUrgency urgency, std::function<void(absl::Status)> done,
                    std::shared_ptr<const BucketPolicy> buckets);

  // Adds up the losses of a batch for want of a recipe, and captures it later once that pays.
  void NoteLosses(const BatchPlan& plan, const BatchTarget& used, bool eager, int64_t replay_ns);

 private:
  void CaptureAhead(const Model& model, CaptureTarget target, CaptureUrgency urgency,
                    std::function<void(absl::Status)> done);

  // Constant after construction.
  const EngineOptions& options_;
  RecipeCache& cache_;
  Captures& captures_;
  const SliceProver& slices_;
  // Self-synchronised.
  MissedRecipeCosts missed_costs_;
  RefusedKeys refused_roomier_;
};

}  // namespace reprise
