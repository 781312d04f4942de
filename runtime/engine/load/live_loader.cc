#include "runtime/engine/load/live_loader.h"

#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"
#include "runtime/passes/kit/pass.h"
#include "runtime/passes/live/live_form.h"
#include "runtime/verify/proof_sizes.h"

namespace reprise {

namespace {

// Returns the places that the live input `name` is about.
ModelSignature::LivePlaces PlacesOf(absl::string_view name, const ModelDraft& draft) {
  ModelSignature::LivePlaces places;
  if (absl::ConsumePrefix(&name, kLiveLikeInput)) {
    const auto& inputs = draft.signature->inputs;
    const auto like = absl::c_find_if(inputs, [&](const ModelIo& one) { return one.name == name; });
    places.like = static_cast<int>(like - inputs.begin());
    return places;
  }
  absl::ConsumePrefix(&name, kLiveInput);
  const auto& axes = draft.proof->axes;
  const auto axis = absl::c_find_if(axes, [&](const ModelAxis& one) { return one.symbol == name; });
  places.axis = axis - axes.begin();
  return places;
}

}  // namespace

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
                                                 const std::vector<size_t>& refused, Rows rows,
                                                 const std::map<std::string, int64_t>& steps) {
  std::string batch;
  std::set<std::string> symbols;
  std::vector<std::string> wanted;
  for (const ModelAxis& axis : model.proof->axes) {
    if (axis.is_batch && rows == Rows::kEndApart) {
      batch = axis.symbol;
    } else {
      symbols.insert(axis.symbol);
    }
  }
  wanted.reserve(refused.size());
  for (const size_t i : refused) wanted.push_back(model.proof->axes[i].symbol);
  const Graph& graph = *model.program->graph;
  ASSIGN_OR_RETURN(LiveForm form, MakeLiveForm(graph, batch, symbols, wanted, steps));
  RETURN_IF_ERROR(RunLoadPasses(form.graph));
  ModelDraft draft = {.options = model.options};
  draft.options.packing = PackingMode::kOff;  // The model is packed as it is.
  *draft.signature = *model.signature;
  draft.program->graph = std::move(form.graph);
  draft.program->device_fingerprint = model.program->device_fingerprint;
  draft.program->owner = model.program->owner;
  draft.program->nodes = model.program->nodes;
  draft.program->choice = model.program->choice;
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
    axis->step = steps.at(live.symbol);
  }
  for (const ValueId id : draft.program->graph->inputs()) {
    const Value& input = draft.program->graph->value(id);
    if (!absl::StartsWith(input.name, kLiveInput)) continue;
    draft.signature->live_inputs.push_back(
        {.name = input.name, .dtype = input.dtype, .dims = input.dims});
    draft.signature->live_places.push_back(PlacesOf(input.name, draft));
  }
  draft.program->fingerprint = FingerprintGraph(*draft.program->graph);
  return draft;
}

void LiveLoader::Improve(ModelDraft& model, Certifier::StoreLookup& lookup) const {
  std::vector<size_t> wanted = Refused(model);
  if (wanted.empty()) return;
  const std::vector<size_t> refused = wanted;
  const auto steps = FindSteps(*model.program->graph, model.proof->axes, refused);
  // Try once more where some of the axes gain nothing: the others have a form without them.
  for (int round = 0; round < 2 && !wanted.empty(); ++round) {
    Certifier::StoreLookup own_lookup;
    absl::StatusOr<ModelDraft> draft = Certified(model, wanted, Rows::kEndApart, steps, own_lookup);
    if (draft.ok() && !MayShare(*draft)) {
      draft = Certified(model, wanted, Rows::kEndAlike, steps, own_lookup);
    }
    if (!draft.ok()) {
      if (absl::IsNotFound(draft.status()) || absl::IsUnimplemented(draft.status())) return;
      context_.log(absl::StrCat(
          "model ", model.id().name,
          ": its form with live ends is not taken: ", std::string(draft.status().message())));
      return;
    }
    std::vector<size_t> gained;
    absl::c_copy_if(wanted, std::back_inserter(gained),
                    [&](size_t i) { return draft->proof->axes[i].certificate.certified; });
    if (round == 0) TellWhy(*draft, refused, model);
    if (gained.size() == wanted.size() && KeepsOthers(*draft, model)) {
      draft->program->variants = std::move(model.program->variants);
      draft->program->split_axes = std::move(model.program->split_axes);
      draft->program->plain = std::move(model.program->graph);
      model.signature = std::move(draft->signature);
      model.program = std::move(draft->program);
      draft->proof->packing = std::move(model.proof->packing);
      draft->proof->packing_refusal = std::move(model.proof->packing_refusal);
      draft->proof->packing_reason = std::move(model.proof->packing_reason);
      model.proof = std::move(draft->proof);
      lookup = own_lookup;
      return;
    }
    if (gained.size() == wanted.size()) return;
    wanted = std::move(gained);
  }
}

absl::StatusOr<ModelDraft> LiveLoader::Certified(const ModelDraft& model,
                                                 const std::vector<size_t>& wanted, Rows rows,
                                                 const std::map<std::string, int64_t>& steps,
                                                 Certifier::StoreLookup& lookup) const {
  ASSIGN_OR_RETURN(ModelDraft draft, MakeDraft(model, wanted, rows, steps));
  lookup = {};
  RETURN_IF_ERROR(Certifier(context_).FindOut(draft, lookup));
  return draft;
}

bool LiveLoader::MayShare(const ModelDraft& draft) {
  return absl::c_all_of(draft.proof->axes, [](const ModelAxis& axis) {
    return !axis.is_batch || axis.certificate.certified;
  });
}

bool LiveLoader::KeepsOthers(const ModelDraft& draft, const ModelDraft& model) {
  for (size_t i = 0; i < model.proof->axes.size(); ++i) {
    if (model.proof->axes[i].certificate.certified && !draft.proof->axes[i].certificate.certified)
      return false;
  }
  return true;
}

// Tells why: a reader wants to know of an obstacle that is left once nodes know where rows end.
void LiveLoader::TellWhy(const ModelDraft& draft, const std::vector<size_t>& refused,
                         ModelDraft& model) {
  for (const size_t i : refused) {
    const ModelAxis& tried = draft.proof->axes[i];
    if (tried.certificate.certified) continue;
    model.proof->axes[i].certificate = tried.certificate;
  }
}

}  // namespace reprise
