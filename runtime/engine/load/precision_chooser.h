// PrecisionChooser: chooses which nodes of a model round, so that its answers keep the cosine of
// its goal (ModelOptions::precision_goal).
//
// Answers to a few requests are compared with the exact ones. Where all nodes may not round, each
// is tried alone, and the nodes that cost most accuracy become exact until the bound holds: with
// `auto` by their loss, with `fast` by their loss for each saved nanosecond. Losses are kept to
// half of the bound's, since other requests lose more than the ones that were tried. A choice is
// kept in the recipe store: the recipes there are of it.
//
// Threads: before the model is shared.
#pragma once

#include "absl/status/status.h"
#include "runtime/engine/load/loader_context.h"
#include "runtime/engine/load/model_draft.h"
#include "runtime/engine/load/precision_trial.h"
#include "runtime/engine/load/stored_model.h"

namespace reprise {

class PrecisionChooser {
 public:
  explicit PrecisionChooser(const LoaderContext& context) : context_(context) {}

  // Sets the program's nodes and choice. Errors: INVALID_ARGUMENT for requests that the model does
  // not take, where no request can be made up, where an input decides a shape, and where the bound
  // is missed by what rounds in any case; those of ModelOptions::calibration.
  absl::Status Choose(ModelDraft& model) const;

 private:
  StoredModelKey KeyOf(const ModelView& model, const PrecisionTrial::Requests& requests) const;
  // Returns the choice of the store; null where it has none.
  std::shared_ptr<const PrecisionChoice> Restore(const ModelId& id,
                                                 const StoredModelKey& key) const;
  absl::StatusOr<PrecisionChoice> Measure(const ModelView& model,
                                          PrecisionTrial::Requests requests) const;

  LoaderContext context_;
};

}  // namespace reprise
