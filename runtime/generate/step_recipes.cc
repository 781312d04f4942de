#include "runtime/generate/step_recipes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/capture/capture.h"
#include "runtime/engine/packing/packing.h"

namespace reprise {

absl::StatusOr<StepRecipes> StepRecipes::Make(const Engine& engine, const Model& model,
                                              PagedForm& form, int64_t most_tokens,
                                              int64_t most_picks, Stream& stream) {
  auto variant = std::make_shared<ModelVariant>();
  variant->graph = std::move(form.graph);
  variant->fingerprint = FingerprintGraph(*variant->graph);
  KeyPolicy policy = model.key_policy();
  policy.packing = kPacked;
  StepRecipes all;
  for (int64_t tokens = 1; tokens <= most_tokens; tokens *= 2) {
    StepRecipe one = {.tokens = tokens, .picks = std::min(tokens, most_picks)};
    // Room for one more, so that a number of picks is never the number of tokens.
    Binding binding = {.axes = {{kTokensAxis, tokens}, {kSegmentsAxis, one.picks + 1}}};
    ASSIGN_OR_RETURN(std::unique_ptr<Recipe> compiled,
                     model.CompileAt(MakeKey(variant->fingerprint, std::move(binding),
                                             engine.options().device->fingerprint(), policy),
                                     variant.get(), engine.options()));
    compiled->note = {.model = model.id().name,
                      .version = model.id().version,
                      .bucket = StepLabel(tokens),
                      .reason = std::string(CompileReasonName(CompileReason::kWarmup))};
    one.recipe = std::move(compiled);
    ASSIGN_OR_RETURN(one.parameters, model.owner()->parameters().TableFor(one.recipe));
    RETURN_IF_ERROR(PrimeRecipe(*one.recipe, *one.parameters, stream));
    const CompileTimes& times = one.recipe->times;
    const std::string hex = one.recipe->key.hex();
    model.owner()->observer().OnCompile({.reason = CompileReason::kWarmup,
                                         .bucket = one.recipe->note.bucket,
                                         .recipe = hex,
                                         .phases = {.specialize_ns = times.specialize_ns,
                                                    .passes_ns = times.passes_ns,
                                                    .plan_ns = times.plan_ns,
                                                    .bind_ns = times.bind_ns}});
    all.recipes_.push_back(std::move(one));
  }
  return all;
}

std::string StepLabel(int64_t tokens) { return absl::StrCat("g", tokens); }

const StepRecipe& StepRecipes::For(int64_t tokens) const {
  const auto fits = std::find_if(recipes_.begin(), recipes_.end(),
                                 [&](const StepRecipe& one) { return one.tokens >= tokens; });
  return fits == recipes_.end() ? recipes_.back() : *fits;
}

}  // namespace reprise
