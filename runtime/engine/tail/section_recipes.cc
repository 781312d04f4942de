#include "runtime/engine/tail/section_recipes.h"

#include <cstring>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/capture/exact_limit.h"
#include "runtime/engine/capture/stored_recipes.h"
#include "runtime/graph/graph.h"
#include "runtime/recipe/compiler.h"
#include "runtime/recipe/store.h"

namespace reprise {

CaptureTarget SectionRecipes::TargetOf(const GraphSection& section, const Values& values,
                                       std::shared_ptr<const Tail::TypedSection>* typed) const {
  std::vector<std::pair<DType, size_t>> types;
  Binding binding;
  for (const ValueId id : section.graph->inputs()) {
    const std::string& name = section.graph->value(id).name;
    const Tensor& value = values.at(name);
    types.emplace_back(value.dtype(), value.shape().size());
    for (size_t d = 0; d < value.shape().size(); ++d) {
      binding.axes[Tail::SymbolOf(name, d)] = value.shape()[d];
    }
  }
  for (const std::string& name : section.shape_inputs) {
    const Tensor& value = values.at(name);
    // A copy: the key outlives the request.
    Tensor kept = Tensor::Make(value.dtype(), value.shape(), [&](void* to) {
      if (value.bytes() > 0) std::memcpy(to, value.data(), value.bytes());
    });
    binding.shape_inputs.insert_or_assign(name, std::move(kept));
  }
  CaptureTarget target = {.bucket = "exact", .exact = true, .section = section.label};
  if (context_.shape.rehearsal) target.reason = CompileReason::kWarmup;
  const auto known = context_.tail.SectionFor(section, types);
  if (typed != nullptr) *typed = known;
  target.variant = known->variant;
  target.key =
      MakeKey(target.variant->fingerprint, std::move(binding),
              context_.model.DeviceOf(context_.options).fingerprint(), context_.model.key_policy());
  return target;
}

absl::StatusOr<SectionRecipes::Choice> SectionRecipes::Find(const GraphSection& section,
                                                            const Values& values, bool pad) {
  std::shared_ptr<const Tail::TypedSection> typed;
  CaptureTarget target = TargetOf(section, values, &typed);
  Choice choice;
  if (pad) {
    choice.fitted = typed->padding.Fit(
        target.key.binding,
        [&](const std::string& name) -> const Tensor& { return values.at(name); });
  }
  // The sizes that arrived have a recipe of their own already.
  if (choice.fitted.has_value() && context_.cache.Contains(target.key)) choice.fitted.reset();
  if (choice.fitted.has_value()) {
    if (choice.fitted->live != nullptr) target.variant = choice.fitted->live;
    target.key = MakeKey(target.variant->fingerprint, choice.fitted->binding,
                         context_.model.DeviceOf(context_.options).fingerprint(),
                         context_.model.key_policy());
    target.exact = false;  // There are few of them.
  }
  choice.recipe = context_.cache.Find(target.key);
  context_.model.owner()->observer().On(CacheLookup{choice.recipe != nullptr});
  if (choice.recipe == nullptr && choice.fitted.has_value()) {
    choice.recipe = Larger(target, *choice.fitted);
  }
  if (choice.recipe != nullptr) return choice;
  ASSIGN_OR_RETURN(choice.recipe, Miss(target));
  return choice;
}

SectionRecipes::RecipePtr SectionRecipes::Larger(const CaptureTarget& target,
                                                 const SectionPadding::Fitted& fitted) {
  const Model& model = context_.model;
  const bool is_default = context_.shape.on_miss == OnMiss::kDefault;
  const bool frozen = model.IsFrozen(context_.options);
  if (is_default
          ? !frozen && model.options().capture == CapturePolicy::kInline
          : context_.shape.on_miss != OnMiss::kPad && context_.shape.on_miss != OnMiss::kFrozen) {
    return nullptr;
  }
  RecipePtr least;
  const std::shared_ptr<const ReadyIndex> index = context_.cache.IndexOf(target.key.graph);
  const std::shared_ptr<const RecipeList> recipes = index->Snapshot();
  for (const RecipePtr& ready : *recipes) {
    if (!CanServe(ready->key, target.key, fitted.padded)) continue;
    const bool is_proved = absl::c_all_of(fitted.largest, [&](const auto& most) {
      return ready->key.binding.axes.at(most.first) <= most.second;
    });
    if (!is_proved) continue;
    if (least == nullptr || ready->frame_bytes() < least->frame_bytes()) least = ready;
  }
  if (least == nullptr) return nullptr;
  Note(CaptureOutcome::kLarger);
  context_.cache.Find(least->key);  // it was used
  if (is_default && !frozen) {
    context_.captures.Begin(model.shared_from_this(), target, CaptureUrgency::kBehind,
                            {.done = [](absl::Status) {}});
  }
  return least;
}

absl::StatusOr<SectionRecipes::RecipePtr> SectionRecipes::Prepare(const GraphSection& section,
                                                                  const Values& values) {
  return Prepare(TargetOf(section, values));
}

absl::StatusOr<SectionRecipes::RecipePtr> SectionRecipes::Prepare(const CaptureTarget& target) {
  const Model& model = context_.model;
  const EngineOptions& options = context_.options;
  const auto prepare = [&]() -> absl::StatusOr<std::unique_ptr<Recipe>> {
    // A model that runs op by op has no other recipes, so these outlive a restart.
    const bool keep = options.store != nullptr && model.options().capture == CapturePolicy::kOff;
    std::unique_ptr<Recipe> recipe = keep ? RestoreEager(options, model, target) : nullptr;
    if (recipe == nullptr) {
      const int64_t start_ns = options.clock->NowNs();
      CompiledPlan plan;
      ASSIGN_OR_RETURN(recipe, model.CompileAt(target.key, target.variant.get(), options,
                                               keep ? &plan : nullptr));
      if (keep && options.store->writable()) {
        KeepRecipe(options, model, *recipe, plan, options.clock->NowNs() - start_ns);
      }
    }
    recipe->note = {.model = model.id().name, .version = model.id().version, .bucket = "eager"};
    return recipe;
  };
  return context_.eager.GetOrPrepare(target.key, model.eager_share(), prepare);
}

absl::StatusOr<SectionRecipes::RecipePtr> SectionRecipes::Miss(const CaptureTarget& target) {
  const Model& model = context_.model;
  const OnMiss on_miss = context_.shape.on_miss;
  const bool frozen = model.IsFrozen(context_.options) && !context_.shape.rehearsal;
  const bool is_default = on_miss == OnMiss::kDefault;
  if (on_miss == OnMiss::kReject) {
    return absl::FailedPreconditionError(absl::StrCat(
        "model '", model.id().name, "' has no recipe for the section ", target.section, " at ",
        model.BindingText(target.key.binding), ", and reprise.on_miss is reject"));
  }
  const bool behind = is_default && model.options().capture == CapturePolicy::kBackground;
  const bool never = is_default && model.options().capture == CapturePolicy::kOff;
  if (frozen || behind || never || (!is_default && on_miss != OnMiss::kWait) ||
      (target.exact && IsOneTooMany(model, on_miss, target.key, context_.cache))) {
    if (behind && !frozen) {
      context_.captures.Begin(model.shared_from_this(), target, CaptureUrgency::kBehind,
                              {.done = [](absl::Status) {}});
    }
    Note(CaptureOutcome::kEager);
    return Prepare(target);
  }
  const int64_t since_ns = context_.options.clock->NowNs();
  ASSIGN_OR_RETURN(CaptureResult result,
                   CaptureRecipe(context_.options, context_.cache, model, target, context_.stream));
  Note(result.outcome == RecipeCache::Outcome::kCaptured ? CaptureOutcome::kCaptured
                                                         : CaptureOutcome::kWaited);
  if (result.record.has_value()) {
    if (!context_.shape.rehearsal) {
      result.record->AddWaiter(context_.shape.id, context_.options.clock->NowNs() - since_ns);
    }
    if (context_.shape.rehearsal) result.record->behind = true;
    context_.options.on_capture(*result.record);
    context_.misses.Add(*std::move(result.record));
  }
  return std::move(result.recipe);
}

void SectionRecipes::Note(CaptureOutcome outcome) { outcome_ = Harder(outcome_, outcome); }

}  // namespace reprise
