#include "runtime/engine/load/live_loader.h"

#include <memory>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/passes/kit/pass.h"
#include "runtime/passes/live/live_form.h"

namespace reprise {

std::vector<size_t> LiveLoader::Refused(const ModelDraft& model) {
  std::vector<size_t> refused;
  if (model.program->tail != nullptr || !model.signature->shape_inputs.empty()) return refused;
  for (size_t i = 0; i < model.proof->axes.size(); ++i) {
    const ModelAxis& axis = model.proof->axes[i];
    const bool asked = model.options.no_padding.contains(axis.label);
    if (!axis.is_batch && !axis.counts_rows && !axis.certificate.certified && !asked) {
      refused.push_back(i);
    }
  }
  return refused;
}

absl::StatusOr<ModelDraft> LiveLoader::MakeDraft(const ModelDraft& model,
                                                 const std::vector<size_t>& refused) {
  std::string batch;
  std::set<std::string> symbols;
  std::vector<std::string> wanted;
  for (const ModelAxis& axis : model.proof->axes) {
    if (axis.is_batch) {
      batch = axis.symbol;
    } else {
      symbols.insert(axis.symbol);
    }
  }
  for (const size_t i : refused) wanted.push_back(model.proof->axes[i].symbol);
  ASSIGN_OR_RETURN(LiveForm form, MakeLiveForm(*model.program->graph, batch, symbols, wanted));
  RETURN_IF_ERROR(RunLoadPasses(form.graph));
  ModelDraft draft = {.options = model.options};
  *draft.signature = *model.signature;
  draft.program->graph = std::move(form.graph);
  draft.program->device_fingerprint = model.program->device_fingerprint;
  draft.program->owner = model.program->owner;
  for (const ModelAxis& axis : model.proof->axes) {
    draft.proof->axes.push_back({.label = axis.label,
                                 .symbol = axis.symbol,
                                 .is_batch = axis.is_batch,
                                 .counts_rows = axis.counts_rows});
  }
  for (LiveForm::Axis& live : form.axes) {
    const auto axis = absl::c_find_if(
        draft.proof->axes, [&](const ModelAxis& one) { return one.symbol == live.symbol; });
    axis->extents = std::move(live.extents);
    axis->whole_from = live.smallest;
    if (!live.has_input) continue;
    const std::string name = absl::StrCat(kLiveInput, live.symbol);
    const Value& input = draft.program->graph->value(draft.program->graph->FindValue(name));
    draft.signature->live_inputs.push_back(
        {.name = name, .dtype = input.dtype, .dims = input.dims});
    draft.signature->live_axes.push_back(axis - draft.proof->axes.begin());
  }
  draft.program->fingerprint = FingerprintGraph(*draft.program->graph);
  return draft;
}

void LiveLoader::Improve(ModelDraft& model, Certifier::StoreLookup& lookup) const {
  const std::vector<size_t> refused = Refused(model);
  if (refused.empty()) return;
  absl::StatusOr<ModelDraft> made = MakeDraft(model, refused);
  if (!made.ok()) return;  // Windows are not what stands against padding.
  ModelDraft& draft = *made;
  Certifier::StoreLookup own_lookup;
  if (const absl::Status status = Certifier(context_).FindOut(draft, own_lookup); !status.ok()) {
    context_.log(absl::StrCat("model ", model.id().name, ": its form with live ends is not taken: ",
                              std::string(status.message())));
    return;
  }
  const auto certified = [](const ModelDraft& one, size_t i) {
    return one.proof->axes[i].certificate.certified;
  };
  bool gains = false, loses = false;
  for (size_t i = 0; i < model.proof->axes.size(); ++i) {
    gains = gains || (certified(draft, i) && !certified(model, i));
    loses = loses || (!certified(draft, i) && certified(model, i));
  }
  if (gains && !loses) {
    draft.program->variants = std::move(model.program->variants);
    model.signature = std::move(draft.signature);
    model.program = std::move(draft.program);
    model.proof = std::move(draft.proof);
    lookup = own_lookup;
    return;
  }
  // A reader wants to know of an obstacle that is left once strides are none.
  for (const size_t i : refused) {
    if (draft.proof->axes[i].extents.empty() || certified(draft, i)) continue;
    const int runs = model.proof->axes[i].certificate.runs;
    model.proof->axes[i].certificate = draft.proof->axes[i].certificate;
    model.proof->axes[i].certificate.runs += runs;
    std::erase_if(model.proof->axes[i].certificate.guards,
                  [](const std::string& guard) { return guard.starts_with(kLiveInput); });
  }
}

}  // namespace reprise
