// AxesFinder: which dims of a model's inputs are one axis, and the names of the axes.
//
// Dims that the shape rules force to be equal are one axis, and so are dims of one name, since
// padding relies on that, unless the model takes no sizes then but one; an axis that takes one size
// alone becomes a constant dim. Requests whose sizes the model takes though its axes do not get
// SplitAxes.
//
// Threads: one. Errors: the shape rules' where no sizes fit; RESOURCE_EXHAUSTED once the time of
// the load is over.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/load_budget.h"
#include "runtime/engine/load/loader_context.h"
#include "runtime/engine/load/model_draft.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/read/axes.h"

namespace reprise {

class AxesFinder {
 public:
  explicit AxesFinder(const LoaderContext& context) : context_(context) {}

  // Fills in the axes of `model`, the dims of its inputs and outputs, its measure, its variants and
  // the parts that take its axes apart. `as_imported`: the graph before any pass, if requests may
  // override initialisers.
  absl::Status Find(ModelDraft& model, Graph as_imported, const LoadBudget& budget) const;

 private:
  // Returns the axes of a model whose symbols may be tried at other sizes, if `can_try`. Inputs get
  // the symbols that were merged.
  MergedSymbols MergeAxes(ModelDraft& model, bool can_try, const LoadBudget& budget) const;
  // Returns `merged`, where some symbols take one size alone or none were merged, or better ones: a
  // name may stand for dims that differ. Inputs get symbols of their own for the dims of such a
  // name.
  MergedSymbols MergeApart(ModelDraft& model, MergedSymbols merged, const LoadBudget& budget) const;
  // Prepares for requests whose sizes the axes do not have; `declared`: the inputs as the file has
  // them.
  void SplitAtSizes(ModelDraft& model, std::vector<ModelIo> declared, const MergedSymbols& merged,
                    bool can_try, const LoadBudget& budget) const;
  static SizeMeasure MeasureOf(const ModelDraft& model);

  const LoaderContext& context_;
};

}  // namespace reprise
