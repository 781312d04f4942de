// The engine's recipes as people look at them: listed, compiled for the caller alone, filled,
// timed.
#include <chrono>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/packing/packed_frame.h"
#include "runtime/engine/types/data_error.h"
#include "runtime/graph/text.h"
#include "runtime/passes/kit/pass.h"
#include "runtime/passes/specialize/specialize.h"
#include "runtime/recipe/compiler.h"

namespace reprise {
namespace {

// Returns the bucket that recipes of `target` are of; "exact" where there is none of these sizes.
std::string LabelAt(const Model& model, const BatchTarget& target) {
  if (target.packed) return PackedLabel(target.sizes[0]);
  AxisSizes sizes;
  for (size_t i = 0; i < model.axes().size(); ++i) {
    if (model.CertificateOf(i).certified) sizes[model.axes()[i].label] = target.sizes[i];
  }
  const std::string label = RecipeLabel(sizes, model.axes().size(), model.buckets()->batch_axis);
  return model.FindBucket(label).has_value() ? label : "exact";
}

}  // namespace

const Graph& Engine::SymbolicGraph(const Model& model, bool packed) {
  if (packed) return model.packing()->graph();
  return model.program().plain.has_value() ? **model.program().plain : *model.program().graph;
}

absl::StatusOr<std::unique_ptr<Recipe>> Engine::CompileCounted(const Model& model,
                                                               const BatchTarget& target,
                                                               const RecipeKey& key) const {
  const int64_t rss_before = metrics_ == nullptr ? 0 : ResidentBytes();
  ASSIGN_OR_RETURN(std::unique_ptr<Recipe> recipe, model.CompileAt(key, nullptr, options_));
  if (metrics_ == nullptr) return recipe;
  MissRecord record = {.time = std::chrono::system_clock::now(),
                       .model = model.id(),
                       .bucket = LabelAt(model, target),
                       .binding = model.BindingText(key.binding),
                       .recipe = recipe->key.hex(),
                       .reason = CompileReason::kWarmup,
                       .behind = true,
                       .phases = {.specialize_ns = recipe->times.specialize_ns,
                                  .passes_ns = recipe->times.passes_ns,
                                  .plan_ns = recipe->times.plan_ns,
                                  .bind_ns = recipe->times.bind_ns},
                       .compile_rss_bytes = ResidentBytes() - rss_before};
  DescribeRecipe(*recipe, record);
  model.owner()->observer().On(CompileRecord{.reason = record.reason,
                                             .bucket = record.bucket,
                                             .recipe = record.recipe,
                                             .phases = record.phases});
  recipe->note.bucket = record.bucket;
  misses_.Add(std::move(record));
  return recipe;
}

absl::StatusOr<FilledFrame> Engine::Fill(const Model& model, const Request& request, Stream& stream,
                                         bool packed) const {
  ASSIGN_OR_RETURN(const RequestShape shape, model.Measure(request));
  if (!shape.overrides.empty()) {
    return absl::InvalidArgumentError("a recipe by itself takes no value for an initialiser");
  }
  if (shape.splits_axes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a recipe by itself takes sizes that fit the axes: ", shape.misfit));
  }
  if (packed && !model.Packs(shape)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request is not packed: ", model.packing_refusal()));
  }
  BatchTarget target = {.sizes = shape.sizes, .packed = packed};
  if (packed) target.sizes = {shape.tokens, shape.rows};
  FilledFrame filled;
  ASSIGN_OR_RETURN(filled.recipe,
                   CompileCounted(model, target, model.KeyAt(target, shape, nullptr)));
  const Recipe& recipe = *filled.recipe;
  ASSIGN_OR_RETURN(filled.parameters, model.owner()->parameters().TableFor(filled.recipe));
  RETURN_IF_ERROR(stream.Reserve(recipe));
  filled.errors = std::make_unique<FirstDataError>(recipe);
  filled.frame = stream.MakeFrame(recipe, filled.parameters->addresses(), filled.errors.get());
  if (packed) {
    filled.frame.live_rows = shape.tokens;
    filled.frame.live_segments = shape.rows;
    const PackedPart part = {.request = &request,
                             .rows = shape.rows,
                             .length = shape.sizes[model.packing()->sequence_axis()]};
    GatherPacked(recipe, model.signature().recipe_inputs, {&part, 1}, std::nullopt,
                 stream.inputs());
    return filled;
  }
  for (size_t i = 0; i < recipe.inputs.size(); ++i) {
    const TensorSlot& slot = recipe.inputs[i];
    if (slot.bytes == 0) continue;
    if (i >= model.signature().recipe_inputs.size()) {
      std::memset(stream.inputs() + slot.offset, 1, slot.bytes);  // Nothing is padded.
      continue;
    }
    std::memcpy(stream.inputs() + slot.offset,
                request.inputs[model.signature().recipe_inputs[i]].data, slot.bytes);
  }
  return filled;
}

absl::StatusOr<RecipeProfile> Engine::Profile(const Model& model, const Request& request,
                                              Stream& stream, int repeats, bool packed) const {
  ASSIGN_OR_RETURN(const FilledFrame filled, Fill(model, request, stream, packed));
  RecipeProfile profile = ProfileRecipe(
      filled.recipe, filled.frame, [&] { stream.Replay(*filled.recipe, filled.frame); }, repeats,
      *options_.clock);
  for (int i = 0; metrics_ != nullptr && i < repeats; ++i) {
    model.owner()->observer().On(ReplayRecord{.bucket = filled.recipe->note.bucket,
                                              .duration_ns = profile.replay_ns,
                                              .rows = filled.frame.live_rows,
                                              .requests = 1});
  }
  return profile;
}

absl::StatusOr<std::unique_ptr<const Recipe>> Engine::CompileAt(const Model& model,
                                                                const std::vector<int64_t>& sizes,
                                                                bool packed) const {
  const BatchTarget target = {.sizes = sizes, .packed = packed};
  return CompileCounted(model, target, model.KeyAt(target, RequestShape(), nullptr));
}

std::vector<CachedRecipe> Engine::ListRecipes() const {
  std::vector<CachedRecipe> result;
  for (RecipeCache::Entry& entry : cache_.Entries()) {
    result.push_back({std::move(entry.recipe), entry.uses, entry.created, entry.last_used});
  }
  return result;
}

RecipeGraphs Engine::GraphsOf(const Recipe& recipe) const {
  const bool packed = recipe.key.packing == kPacked;
  std::vector<std::shared_ptr<const Model>> held;  // see LoadedBefore
  std::shared_ptr<const Model> model;
  {
    MutexLock lock(models_mutex_);
    for (const auto& one : models_) {
      const std::shared_ptr<const Model>& known = held.emplace_back(one.lock());
      if (known == nullptr || (packed && known->packing() == nullptr)) continue;
      const GraphFingerprint& print =
          packed ? known->packing()->fingerprint() : known->fingerprint();
      if (print.digest != recipe.key.graph.digest) continue;
      model = known;
      // The model that captured it has its own names for the values.
      if (known->id().name == recipe.note.model) break;
    }
  }
  // The graph of a section after a cut, or of a model that is gone, is in the key, without names.
  absl::StatusOr<Graph> symbolic =
      model == nullptr ? Parse(*recipe.key.graph.text) : SymbolicGraph(*model, packed);
  RecipeGraphs graphs = {.symbolic = symbolic.ok() ? Print(*symbolic) : *recipe.key.graph.text};
  if (!symbolic.ok()) return graphs;
  if (model != nullptr) {
    CompiledPlan plan;
    if (model->CompileAt(recipe.key, nullptr, options_, &plan).ok()) {
      graphs.specialized = std::move(plan.graph);
    }
    return graphs;
  }
  absl::StatusOr<Graph> graph = Specialize(*symbolic, recipe.key.binding);
  const PipelineOptions passes = {.precision = PrecisionOfText(recipe.key.precision)};
  if (graph.ok() && RunCapturePasses(*graph, passes).ok()) graphs.specialized = Print(*graph);
  return graphs;
}

std::vector<CachedRecipe> Engine::ListEager() const {
  std::vector<CachedRecipe> result;
  for (RecipeCache::Entry& entry : eager_.Entries()) {
    result.push_back({std::move(entry.recipe), entry.uses, entry.created, entry.last_used});
  }
  return result;
}

}  // namespace reprise
