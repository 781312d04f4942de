#include "runtime/engine/load/axes_finder.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/cpu_clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/load/size_check.h"
#include "runtime/engine/model/model_variants.h"
#include "runtime/engine/model/split_axes.h"
#include "runtime/engine/model/tail.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/passes/read/size_regions.h"
#include "runtime/shapes/dim_expression.h"
#include "runtime/verify/mask_inputs.h"

namespace reprise {
namespace {

// Returns whether a Squeeze of all dims that are 1 decides ranks.
bool SizesDecideRanks(const Graph& graph) {
  return absl::c_any_of(graph.NodeIds(), [&](NodeId id) {
    const Node& node = graph.node(id);
    return !node.removed && node.op == SqueezeOp::kName &&
           (node.inputs.size() < 2 || node.inputs[1] == kNone);
  });
}

// Checks that a graph takes `sizes`; asks nothing once the time of the load is over.
absl::Status TakesWithin(const LoadBudget& budget, SizeRegions& regions,
                         const std::map<std::string, int64_t>& sizes) {
  RETURN_IF_ERROR(budget.CheckTime("finding the axes"));
  return regions.Takes(sizes);
}

// Up to this many symbols of inputs, loading finds out which of them need not be equal.
constexpr size_t kMostSymbolsApart = 16;

// Names whose dims are tried apart, each by itself, while loading.
constexpr size_t kMostNamesApart = 4;

// Returns names that several dims of the inputs have, and that no expression over names reads:
// exporters give one to dims that have nothing in common.
std::vector<std::string> SharedNames(const std::vector<ModelIo>& inputs) {
  std::map<std::string, int> dims_of;
  std::set<std::string> terms;
  for (const ModelIo& input : inputs) {
    if (input.optional) continue;
    for (const Dim& dim : input.dims) {
      if (dim.is_constant()) continue;
      const std::vector<std::string> read = ExpressionSymbols(dim.symbol);
      terms.insert(read.begin(), read.end());
      if (read.empty()) ++dims_of[dim.symbol];
    }
  }
  std::vector<std::string> shared;
  for (const auto& [name, dims] : dims_of) {
    if (dims > 1 && !terms.contains(name)) shared.push_back(name);
  }
  return shared;
}

// Returns `inputs` with a symbol of its own for every dim that has one of `names`, as unnamed dims
// have.
std::vector<ModelIo> WithoutNames(std::vector<ModelIo> inputs, const std::set<std::string>& names) {
  for (ModelIo& input : inputs) {
    if (input.optional) continue;
    for (size_t i = 0; i < input.dims.size(); ++i) {
      if (names.contains(input.dims[i].symbol)) {
        input.dims[i].symbol = absl::StrCat(input.name, ":", i);
      }
    }
  }
  return inputs;
}

void SetInputs(std::vector<ModelIo> inputs, ModelDraft& model) {
  model.signature->inputs = std::move(inputs);
  for (const ModelIo& input : model.signature->inputs) {
    if (input.optional) continue;
    const ValueId value = model.program->graph->FindValue(input.name);
    if (value != kNone) model.program->graph->value(value).dims = input.dims;
  }
}

// Returns whether sizes of some dims must agree, or be a certain one, that the file leaves open.
bool AskForSizes(const MergedSymbols& merged, const std::vector<ModelIo>& inputs) {
  if (!merged.fixed.empty() || !merged.derived.empty()) return true;
  std::set<std::string> seen;
  for (const ModelIo& input : inputs) {
    if (input.optional) continue;
    for (const Dim& dim : merged.Apply(input.dims)) {
      if (dim.is_constant()) continue;
      const bool is_axis = merged.representative.contains(dim.symbol);
      if (!is_axis || !seen.insert(dim.symbol).second) return true;
    }
  }
  return false;
}

}  // namespace

SizeMeasure AxesFinder::MeasureOf(const ModelDraft& model) {
  std::vector<std::vector<size_t>> inputs;
  for (const ModelIo& input : model.signature->inputs) {
    if (input.optional) continue;
    std::vector<size_t>& axes = inputs.emplace_back();
    for (size_t i = 0; i < model.proof->axes.size(); ++i) {
      const auto along = [&](const Dim& dim) { return dim.symbol == model.proof->axes[i].symbol; };
      if (absl::c_any_of(input.dims, along)) axes.push_back(i);
    }
  }
  return SizeMeasure(model.proof->axes.size(), inputs);
}

MergedSymbols AxesFinder::MergeAxes(ModelDraft& model, bool can_try,
                                    const LoadBudget& budget) const {
  std::vector<std::vector<Dim>> dims;
  for (const ModelIo& input : model.signature->inputs) {
    if (input.optional) continue;
    dims.push_back(input.dims);
  }
  if (!can_try) return UnmergedSymbols(dims);
  return MergeSymbols(*model.program->graph, dims, [&] { return budget.CheckTime("").ok(); });
}

MergedSymbols AxesFinder::MergeApart(ModelDraft& model, MergedSymbols merged,
                                     const LoadBudget& budget) const {
  const std::vector<std::string> shared = SharedNames(model.signature->inputs);
  std::vector<std::set<std::string>> choices;
  for (size_t i = 0; i < std::min(shared.size(), kMostNamesApart); ++i) {
    choices.push_back({shared[i]});
  }
  if (shared.size() > 1) choices.emplace_back(shared.begin(), shared.end());
  const std::vector<ModelIo> declared = model.signature->inputs;
  const int64_t start_ns = ThreadCpuClock().NowNs();
  for (const std::set<std::string>& names : choices) {
    // Each takes about as long as finding the axes took with the names.
    if (ThreadCpuClock().NowNs() - start_ns > budget.limits().cpu_ns / 4) break;
    SetInputs(WithoutNames(declared, names), model);
    MergedSymbols apart = MergeAxes(model, /*can_try=*/true, budget);
    const bool complete = budget.CheckTime("").ok() && apart.note.empty();
    if (complete && (!merged.note.empty() || apart.fixed.size() < merged.fixed.size())) {
      return apart;
    }
  }
  SetInputs(declared, model);
  return merged;
}

void AxesFinder::SplitAtSizes(ModelDraft& model, std::vector<ModelIo> declared,
                              const MergedSymbols& merged, bool can_try,
                              const LoadBudget& budget) const {
  if (!AskForSizes(merged, model.signature->inputs)) return;
  auto split =
      std::make_unique<SplitAxes>(std::move(declared), merged.derived,
                                  SplitAxes::Whole{.graph = *model.program->graph,
                                                   .recipe_inputs = model.signature->recipe_inputs,
                                                   .tail = model.program->tail});
  // The search takes some calls for each symbol.
  if (can_try && merged.note.empty() && merged.derived.empty() &&
      split->num_symbols() <= kMostSymbolsApart) {
    const std::vector<std::vector<Dim>> dims = split->Dims();
    const MergedSymbols found =
        MergeSymbols(split->graph(), dims, [&] { return budget.CheckTime("").ok(); });
    // Where the time ran out, sizes were refused for that alone.
    const bool complete = budget.CheckTime("").ok();
    if (complete && found.note.empty() && found.derived.empty()) split->Learn(found);
  }
  model.program->split_axes = std::move(split);
}

absl::Status AxesFinder::Find(ModelDraft& model, Graph as_imported,
                              const LoadBudget& budget) const {
  // Values of shape inputs are unknown yet, so that such a model cannot be tried at other sizes.
  const bool can_try = model.signature->shape_inputs.empty();
  MergedSymbols merged = MergeAxes(model, can_try, budget);
  if (can_try && (!merged.fixed.empty() || !merged.note.empty())) {
    merged = MergeApart(model, std::move(merged), budget);
  }
  std::vector<ModelIo> declared = model.signature->inputs;
  RETURN_IF_ERROR(budget.CheckTime("finding the axes"));
  if (!merged.note.empty()) {
    context_.log(absl::StrCat("model ", model.id().name, ": ", merged.note,
                              merged.error.ok() ? "" : absl::StrCat(": ", merged.error.message())));
  }
  if (absl::IsFailedPrecondition(merged.error) || absl::IsUnimplemented(merged.error)) {
    return merged.error;  // No binding will do better.
  }
  if (can_try && !merged.note.empty() && !SizesDecideRanks(*model.program->graph)) {
    std::vector<ModelIo> wanted;
    absl::c_copy_if(model.signature->inputs, std::back_inserter(wanted),
                    [](const ModelIo& input) { return !input.optional; });
    SizeRegions regions(*model.program->graph, {});
    const absl::Status some =
        CheckSomeSizes(wanted, [&](const std::map<std::string, int64_t>& sizes) {
          return TakesWithin(budget, regions, sizes);
        });
    RETURN_IF_ERROR(budget.CheckTime("finding sizes that the model takes"));
    RETURN_IF_ERROR(some);
  }
  SplitAtSizes(model, std::move(declared), merged, can_try, budget);
  for (size_t i = 0; i < model.signature->inputs.size(); ++i) {
    const ModelIo& input = model.signature->inputs[i];
    if (input.optional || input.dims.empty()) continue;
    if (merged.one_row.contains(input.dims[0].symbol)) model.signature->one_row_inputs.insert(i);
  }
  for (ModelIo& input : model.signature->inputs) {
    input.dims = merged.Apply(input.dims);
    if (input.optional) continue;
    const ValueId value = model.program->graph->FindValue(input.name);
    if (value != kNone) model.program->graph->value(value).dims = input.dims;
  }
  if (absl::c_any_of(model.signature->inputs,
                     [](const ModelIo& input) { return input.has_variants(); })) {
    const std::vector<ModelIo>& outputs = model.program->tail == nullptr
                                              ? model.signature->recipe_outputs
                                              : model.program->tail->outputs();
    model.program->variants = std::make_unique<ModelVariants>(
        std::move(as_imported), model.signature->inputs, outputs, model.options.cut);
  }
  for (ModelIo& output : model.signature->recipe_outputs) output.dims = merged.Apply(output.dims);
  for (const Axis& axis : merged.axes) {
    if (axis.is_batch) model.signature->batch_axis = static_cast<int>(model.proof->axes.size());
    model.proof->axes.push_back({.label = axis.label,
                                 .symbol = axis.symbol,
                                 .is_batch = axis.is_batch,
                                 .counts_rows = axis.counts_rows});
  }
  model.signature->measure = MeasureOf(model);
  for (size_t i = 0; i < model.signature->inputs.size(); ++i) {
    const ValueId value = model.program->graph->FindValue(model.signature->inputs[i].name);
    if (value == kNone) continue;
    if (IsMaskInput(*model.program->graph, value)) model.signature->mask_inputs.insert(i);
    if (IsLengthInput(*model.program->graph, value)) model.signature->length_inputs.insert(i);
  }
  return absl::OkStatus();
}

}  // namespace reprise
