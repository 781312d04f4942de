#include "runtime/engine/capture/capture.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/format_text.h"
#include "runtime/base/go_on.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/capture/stored_recipes.h"
#include "runtime/engine/capture/suggestion.h"
#include "runtime/engine/model/model.h"
#include "runtime/engine/packing/packed_frame.h"
#include "runtime/engine/types/engine_options.h"
#include "runtime/engine/types/graph_history.h"
#include "runtime/engine/types/ignore_errors.h"
#include "runtime/graph/graph_diff.h"
#include "runtime/recipe/compiler.h"
#include "runtime/recipe/store.h"

namespace reprise {
namespace {

// A packed recipe is primed with this many tokens: it may hold many more, which few batches fill.
constexpr int64_t kPrimeTokens = 64;
// A recipe that is captured again within this time after its eviction was evicted too early.
constexpr int64_t kThrashingNs = int64_t{60} * 1'000'000'000;

MissRecord NewRecord(const Model& model, const CaptureTarget& target, const RecipeList& ready) {
  MissRecord record{.time = std::chrono::system_clock::now(),
                    .model = model.id(),
                    .bucket = target.bucket,
                    .binding = model.BindingText(target.key.binding),
                    .recipe = target.key.hex(),
                    .section = target.section};
  if (const auto nearest = NearestRecipe(ready, target.key)) {
    record.nearest = nearest->note.bucket == "exact" ? nearest->note.binding : nearest->note.bucket;
    record.differences = DifferencesOf(
        target.key, nearest->key, [&](const std::string& symbol) { return model.LabelOf(symbol); });
  }
  return record;
}

// Counts the nodes that the recipe runs by a reference kernel.
void TellReferenceKernels(const Recipe& recipe, ModelObserver& observer) {
  for (const Launch& launch : recipe.launches) {
    if (!launch.reference) continue;
    observer.On(ReferenceLaunch{absl::string_view(launch.kernel).substr(sizeof("reference/") - 1),
                                launch.node});
  }
}

// One walk. `record` is a capture's: it stays empty where the store had the recipe.
class CaptureWalk {
 public:
  CaptureWalk(const EngineOptions& options, RecipeCache& cache, const Model& model,
              const CaptureTarget& target, Stream& stream, std::optional<MissRecord>& record)
      : options_(options),
        cache_(cache),
        model_(model),
        target_(target),
        stream_(stream),
        record_(record),
        start_ns_(options.clock->NowNs()) {}

  absl::StatusOr<std::shared_ptr<const Recipe>> Run() {
    const Phase phase(options_.debug, LogModule::kCapture, [&] {
      return absl::StrCat("capture of recipe ", target_.key.hex(), ", ", target_.bucket, " (",
                          model_.BindingText(target_.key.binding), "), of model ",
                          model_.id().name);
    });
    NoteThrashing();
    std::optional<StoreMiss> store_miss;
    if (IsKept(options_, target_)) {
      RestoredRecipe restored = RestoreRecipe(options_, model_, target_);
      if (restored.recipe != nullptr) return Publish(std::move(restored.recipe));
      store_miss = restored.miss;
    }
    const std::shared_ptr<const ReadyIndex> ready = cache_.IndexOf(target_.key.graph);
    MissRecord& record = record_.emplace(NewRecord(model_, target_, *ready->Snapshot()));
    const int64_t rss_before = ResidentBytes();
    CompiledPlan plan;
    const bool keep = IsKept(options_, target_) && options_.store->writable();
    const bool wants_plan = keep || options_.on_graphs != nullptr;
    ASSIGN_OR_RETURN(std::unique_ptr<Recipe> compiled,
                     model_.CompileAt(target_.key, target_.variant.get(), options_,
                                      wants_plan ? &plan : nullptr, target_.go_on));
    record.reason = Reason(store_miss);
    if (record.reason == CompileReason::kGraphChanged) record.cause = CauseOf(store_miss);
    if (options_.on_graphs != nullptr) {
      compiled->note.bucket = target_.bucket;
      compiled->note.model = model_.id().name;
      compiled->note.binding = record.binding;
      options_.on_graphs(*compiled, {.symbolic = plan.symbolic, .specialized = plan.graph});
    }
    record.compile_rss_bytes = ResidentBytes() - rss_before;
    ASSIGN_OR_RETURN(const std::shared_ptr<const Recipe> recipe, Publish(std::move(compiled)));
    // Weights are packed once: the estimate for the next capture leaves their time out.
    const int64_t work_ns = record.phases.total_ns() - record.phases.prepare_ns;
    if (target_.section.empty()) {
      model_.owner()->SetCaptureNs(work_ns);
      model_.learner().RecordCapture(work_ns);
    }
    if (keep) KeepRecipe(options_, model_, *recipe, plan, work_ns);
    return recipe;
  }

 private:
  void NoteThrashing() {
    const std::optional<RecipeCache::Eviction> eviction = cache_.EvictionOf(target_.key);
    if (!eviction.has_value() || start_ns_ - eviction->at_ns >= kThrashingNs) return;
    model_.owner()->observer().On(Thrash{target_.bucket});
    const std::optional<int64_t> times = model_.owner()->CountThrash(start_ns_);
    if (!times.has_value()) return;
    model_.Note(FormatText(
        "recipes thrash: %s (%s) was evicted %.1f s ago and is made again, as were %d others since "
        "the last such line; to avoid it: %s",
        target_.bucket, model_.BindingText(target_.key.binding),
        (start_ns_ - eviction->at_ns) * 1e-9, *times - 1,
        SuggestionFor(model_, target_, CompileReason::kEvicted, eviction, options_.cache_bytes)));
  }

  CompileReason Reason(const std::optional<StoreMiss>& store_miss) {
    const bool first = model_.owner()->BeginFirstCapture();
    if (target_.reason.has_value()) return *target_.reason;
    if (store_miss.has_value()) {
      if (const auto reason = ReasonOf(*store_miss)) return *reason;
    }
    if (cache_.EvictionOf(target_.key).has_value()) return CompileReason::kEvicted;
    const GraphChange* change = model_.graph_change();
    if (change != nullptr && (first || change->recipes.count(RecipeText(target_.key)) != 0)) {
      return CompileReason::kGraphChanged;
    }
    return first ? CompileReason::kFirstRequest : CompileReason::kNewShape;
  }

  // Returns how the graph differs from the one that the recipe was there for.
  std::string CauseOf(const std::optional<StoreMiss>& store_miss) const {
    if (store_miss == StoreMiss::kOtherGraph) {
      const std::vector<std::string> causes = StoredGraphCauses(options_, model_, target_);
      if (!causes.empty()) return FirstCause(causes);
    }
    return model_.graph_change() == nullptr ? "" : FirstCause(model_.graph_change()->causes);
  }

  // Prepares parameters and primes: both are done before the recipe is visible to others.
  absl::StatusOr<std::shared_ptr<const Recipe>> Publish(std::unique_ptr<Recipe> made) {
    ModelObserver& observer = model_.owner()->observer();
    made->note = {
        .model = model_.id().name,
        .version = model_.id().version,
        .bucket = target_.bucket,
        .binding = model_.BindingText(target_.key.binding),
        .bucketed = target_.bucketed,
        .reason = record_.has_value() ? std::string(CompileReasonName(record_->reason)) : "store"};
    if (made->timeable > 0 && made->untimed == 0) made->note.tuning = "by earlier timings";
    Recipe* mutable_recipe = made.get();
    const std::shared_ptr<const Recipe> recipe = std::move(made);
    const int64_t rss_compiled = ResidentBytes();
    const int64_t compiled_at = options_.clock->NowNs();
    Phase preparing(options_.debug, LogModule::kCapture, [] { return "phase prepare"; });
    ASSIGN_OR_RETURN(const auto parameters,
                     model_.owner()->parameters().TableFor(recipe, target_.go_on));
    preparing.End();
    const int64_t prepared_at = options_.clock->NowNs();
    const int64_t rss_prepared = ResidentBytes();
    RETURN_IF_ERROR(model_.CheckArena(*recipe));
    Phase priming(options_.debug, LogModule::kCapture, [] { return "phase prime"; });
    RETURN_IF_ERROR(PrimeRecipe(*recipe, *parameters, stream_, target_.go_on));
    // Memory that data decide goes back within seconds, so no other stream makes room for it.
    if (target_.section.empty() && !model_.has_shape_inputs()) options_.on_primed(*recipe);
    priming.End();
    const int64_t primed_at = options_.clock->NowNs();
    TellReferenceKernels(*recipe, observer);
    if (!record_.has_value()) {
      mutable_recipe->note.total_ns = primed_at - start_ns_;  // not published yet
      observer.On(StoreRequest{});
      model_.Note(FormatText("loaded recipe %s (%s) from %s in %.1f ms (prepare %.1f, prime %.1f)",
                             target_.key.hex(), target_.bucket, options_.store->folder(),
                             (primed_at - start_ns_) / 1e6, (prepared_at - compiled_at) / 1e6,
                             (primed_at - prepared_at) / 1e6));
      return recipe;
    }
    MissRecord& record = *record_;
    record.phases = {.specialize_ns = recipe->times.specialize_ns,
                     .passes_ns = recipe->times.passes_ns,
                     .plan_ns = recipe->times.plan_ns,
                     .bind_ns = recipe->times.bind_ns,
                     .prepare_ns = prepared_at - compiled_at,
                     .prime_ns = primed_at - prepared_at};
    record.prepare_rss_bytes = rss_prepared - rss_compiled;
    record.prime_rss_bytes = ResidentBytes() - rss_prepared;
    DescribeRecipe(*recipe, record);
    record.suggestion = SuggestionFor(model_, target_, record.reason,
                                      cache_.EvictionOf(target_.key), options_.cache_bytes);
    mutable_recipe->note.total_ns = record.phases.total_ns();
    observer.On(CompileRecord{.reason = record.reason,
                              .bucket = target_.bucket,
                              .recipe = record.recipe,
                              .phases = record.phases});
    return recipe;
  }

  const EngineOptions& options_;
  RecipeCache& cache_;
  const Model& model_;
  const CaptureTarget& target_;
  Stream& stream_;
  std::optional<MissRecord>& record_;
  const int64_t start_ns_;
};

}  // namespace

absl::Status PrimeRecipe(const Recipe& recipe, const ParameterTable& parameters, Stream& stream,
                         const std::function<absl::Status()>& go_on) {
  RETURN_IF_ERROR(stream.ReserveForRequest(recipe));
  IgnoreErrors errors;
  Frame frame = stream.MakeFrame(recipe, parameters.addresses(), &errors);
  std::byte* const inputs = stream.inputs();
  if (recipe.key.packing == kPacked) {
    frame.live_rows = std::min(kPrimeTokens, PackedSizesOf(recipe.key).tokens);
    frame.live_segments = 1;
    PrimePacked(recipe, frame.live_rows, inputs);
  } else {
    frame.live_rows = recipe.rows > 0 ? 1 : 0;
    // Zeros are in range for every index.
    std::memset(inputs, 0, recipe.input_bytes);
  }
  absl::Status goes_on;
  stream.Prime(recipe, frame, [&] {
    goes_on = GoesOn(go_on);
    return !goes_on.ok();
  });
  return goes_on;
}

absl::StatusOr<CaptureResult> CaptureRecipe(const EngineOptions& options, RecipeCache& cache,
                                            const Model& model, const CaptureTarget& target,
                                            Stream& stream) {
  std::optional<MissRecord> record;
  ASSIGN_OR_RETURN(
      RecipeCache::Result result, cache.GetOrCapture(target.key, model.owner(), target.exact, [&] {
        return WithinMemory(
            [&] {
              return absl::StrCat("model '", model.id().name, "': capturing ", target.bucket, " (",
                                  model.BindingText(target.key.binding), ")");
            },
            [&] { return CaptureWalk(options, cache, model, target, stream, record).Run(); });
      }));
  CaptureResult captured{.recipe = std::move(result.recipe), .outcome = result.outcome};
  if (result.outcome == RecipeCache::Outcome::kCaptured) captured.record = std::move(record);
  return captured;
}

}  // namespace reprise
