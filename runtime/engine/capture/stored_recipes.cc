#include "runtime/engine/capture/stored_recipes.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/engine/model/model.h"
#include "runtime/engine/types/engine_options.h"
#include "runtime/engine/types/graph_history.h"
#include "runtime/recipe/store.h"
#include "runtime/recipe/stored_recipe.h"

namespace reprise {

namespace {

bool IsStoredForOtherPrecision(const EngineOptions& options, const Model& model,
                               const RecipeKey& key) {
  for (const Precision precision : kPrecisions) {
    if (key.precision == PrecisionName(precision)) continue;
    const RecipeKey other = MakeKey(key.graph, key.binding, key.device,
                                    {.packing = key.packing, .precision = precision});
    if (options.store->Has(RecordNameOf(other, model.id().name))) return true;
  }
  return false;
}

}  // namespace

bool IsKept(const EngineOptions& options, const CaptureTarget& target) {
  return options.store != nullptr && target.variant == nullptr;
}

RestoredRecipe RestoreRecipe(const EngineOptions& options, const Model& model,
                             const CaptureTarget& target) {
  const RecordName name = RecordNameOf(target.key, model.id().name);
  const Phase phase(options.debug, LogModule::kStore,
                    [&] { return absl::StrCat("reading ", name.file()); });
  RecipeStore::Found found = options.store->Read(name);
  if (found.payload.has_value()) {
    absl::StatusOr<CompiledPlan> plan = DecodeRecipe(*found.payload, target.key);
    absl::StatusOr<std::unique_ptr<Recipe>> recipe =
        plan.ok() ? model.RebindAt(*plan, target.key, options) : plan.status();
    if (recipe.ok()) return {.recipe = *std::move(recipe)};
    const bool corrupt = absl::IsDataLoss(recipe.status());
    found.miss = corrupt ? StoreMiss::kCorrupt : StoreMiss::kForeign;
    found.detail = std::string(recipe.status().message());
    if (corrupt) options.store->NoteCorrupt(name, found.detail);
  }
  if (found.miss == StoreMiss::kAbsent && IsStoredForOtherPrecision(options, model, target.key)) {
    found.miss = StoreMiss::kOtherPrecision;
  }
  model.owner()->observer().On(StoreRequest{found.miss});
  model.Note(absl::StrCat("could not find recipe ", target.key.hex(), " (", target.bucket,
                          "): ", StoreMissWords(found.miss), found.detail.empty() ? "" : ": ",
                          found.detail));
  return {.miss = found.miss};
}

std::vector<std::string> StoredGraphCauses(const EngineOptions& options, const Model& model,
                                           const CaptureTarget& target) {
  if (target.key.packing == kPacked || !target.section.empty()) {
    // Their graphs follow from the model's, which was kept with its other recipes.
    if (model.graph_change() != nullptr) return model.graph_change()->causes;
  }
  const RecordName wanted = RecordNameOf(target.key, model.id().name);
  std::optional<RecipeStore::Entry> newest;
  for (const RecipeStore::Entry& entry : options.store->List()) {
    if (!entry.name.has_value()) continue;
    const RecordName& name = *entry.name;
    if (name.kind != wanted.kind || name.subject != wanted.subject ||
        name.device != wanted.device || name.origin != wanted.origin ||
        name.graph == wanted.graph) {
      continue;
    }
    if (!newest.has_value() || newest->modified_unix_s < entry.modified_unix_s) newest = entry;
  }
  if (!newest.has_value()) return {};
  const RecipeStore::Found found = options.store->Read(*newest->name);
  if (!found.payload.has_value()) return {};
  const absl::StatusOr<DetachedRecipe> recipe = DetachRecipe(*found.payload);
  if (!recipe.ok()) return {};
  const bool packed = target.key.packing == kPacked;
  return CausesSince(recipe->plan.symbolic,
                     packed ? model.packing()->graph() : *model.program().graph);
}

std::unique_ptr<Recipe> RestoreEager(const EngineOptions& options, const Model& model,
                                     const CaptureTarget& target) {
  const RecordName name = RecordNameOf(target.key, model.id().name);
  const RecipeStore::Found found = options.store->Read(name);
  if (!found.payload.has_value()) return nullptr;
  absl::StatusOr<CompiledPlan> plan = DecodeRecipe(*found.payload, target.key);
  if (!plan.ok()) {
    options.store->NoteCorrupt(name, std::string(plan.status().message()));
    return nullptr;
  }
  auto recipe = model.RebindAt(*plan, target.key, options, target.variant.get());
  return recipe.ok() ? *std::move(recipe) : nullptr;
}

void KeepRecipe(const EngineOptions& options, const Model& model, const Recipe& recipe,
                const CompiledPlan& plan, int64_t capture_ns) {
  if (Wants(options.debug, LogModule::kStore)) {
    options.debug->Say(LogModule::kStore,
                       absl::StrCat("recipe ", recipe.key.hex(), " waits to be written as ",
                                    RecordNameOf(recipe.key, model.id().name).file()));
  }
  options.store->WriteLater(RecordNameOf(recipe.key, model.id().name), capture_ns,
                            EncodeRecipe(recipe, plan));
}

std::optional<CompileReason> ReasonOf(StoreMiss miss) {
  switch (miss) {
    case StoreMiss::kCorrupt:
      return CompileReason::kStoreCorrupt;
    case StoreMiss::kOtherGraph:
      return CompileReason::kGraphChanged;
    case StoreMiss::kOtherPrecision:
      return CompileReason::kPolicyChange;
    case StoreMiss::kOtherDevice:
      return CompileReason::kDeviceChanged;
    case StoreMiss::kOtherCompiler:
    case StoreMiss::kOtherFormat:
      return CompileReason::kCompilerChanged;
    case StoreMiss::kAbsent:
    case StoreMiss::kForeign:
    case StoreMiss::kUnreadable:
    case StoreMiss::kUnauthentic:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace reprise
