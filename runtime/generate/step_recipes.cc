#include "runtime/generate/step_recipes.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/parallel_for.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/capture/capture.h"
#include "runtime/engine/packing/packing.h"
#include "runtime/generate/turns.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/specialize/between.h"
#include "runtime/recipe/compiler.h"

namespace reprise {
namespace {

// From this number of recipes on, all but the smallest are derived from two graphs.
constexpr size_t kWorthTwo = 5;
// Tokens more than in the largest recipe: a number that no dim of a model has by chance.
constexpr int64_t kBeyond = 9;

class Maker {
 public:
  Maker(const Engine& engine, const Model& model, const ModelVariant& variant, Stream& stream,
        const Shard& shard)
      : engine_(engine),
        model_(model),
        variant_(variant),
        device_(engine.options().device->one_order()),
        stream_(stream),
        shard_(shard) {
    const HelperPool* const cores = engine.CoresOf(model);
    if (cores != nullptr) lanes_ = cores->cores();
    const KernelChoices* const choices = engine.options().choices;
    was_timed_ = choices != nullptr && !choices->All().empty();
  }

  // Makes all of `recipes`, in ascending order of tokens.
  absl::Status Make(std::vector<StepRecipe>& recipes) {
    std::vector<absl::Status> results(recipes.size());
    Turns turns;
    InLanes(recipes.size(), [&](size_t i) {
      Turns::Turn turn(turns, i);
      absl::StatusOr<Rewritten> graph = GraphFor(recipes, i);
      results[i] = graph.ok() ? Capture(*std::move(graph), turn, recipes[i]) : graph.status();
    });
    for (absl::Status& result : results) RETURN_IF_ERROR(std::move(result));
    return absl::OkStatus();
  }

 private:
  // The graphs of the second recipe and of one that is larger than all.
  struct Two {
    Rewritten low, high;
    Binding low_binding, high_binding;
  };

  template <class Work>
  void InLanes(size_t count, const Work& work) const {
    std::atomic<size_t> next{0};
    ParallelFor(std::min(lanes_, static_cast<int>(count)), [&](int) {
      for (size_t i; (i = next++) < count;) work(i);
    });
  }

  static Binding BindingOf(const StepRecipe& one) {
    // Room for more, so that a number of picks is never the number of tokens: rows of the one would
    // be taken for rows of the other.
    const int64_t picks = one.picks + 1 == one.tokens ? one.picks + 2 : one.picks + 1;
    return {.axes = {{kTokensAxis, one.tokens}, {kSegmentsAxis, picks}}};
  }

  RecipeKey KeyOf(const StepRecipe& one) const {
    KeyPolicy policy = model_.key_policy();
    policy.packing = kPacked;
    policy.shard = shard_;
    return MakeKey(variant_.fingerprint, BindingOf(one), device_.fingerprint(), policy);
  }

  CompileOptions OptionsFor(const RecipeKey& key) const {
    CompileOptions options = model_.CompileOptionsFor(key, engine_.options());
    options.device = &device_;
    options.passes.shard = shard_;
    return options;
  }

  // Rewrites by all of the passes.
  absl::StatusOr<Rewritten> RewriteFor(const StepRecipe& one) const {
    const RecipeKey key = KeyOf(one);
    return Rewrite(*variant_.graph, key, OptionsFor(key));
  }

  void MakeTwo(const std::vector<StepRecipe>& recipes) {
    const StepRecipe beyond = {.tokens = recipes.back().tokens + kBeyond,
                               .picks = recipes.back().picks};
    absl::StatusOr<Rewritten> low = Rewritten(), high = Rewritten();
    InLanes(2, [&](size_t i) { (i == 0 ? low : high) = RewriteFor(i == 0 ? recipes[1] : beyond); });
    if (!low.ok() || !high.ok()) return;
    two_.emplace(Two{.low = *std::move(low),
                     .high = *std::move(high),
                     .low_binding = BindingOf(recipes[1]),
                     .high_binding = BindingOf(beyond)});
  }

  absl::StatusOr<Rewritten> GraphFor(const std::vector<StepRecipe>& recipes, size_t i) {
    const StepRecipe& one = recipes[i];
    if (i == 0 || recipes.size() < kWorthTwo) return RewriteFor(one);
    // Callers that need the two while they are made wait for them.
    std::call_once(two_made_, [&] { MakeTwo(recipes); });
    if (!two_.has_value()) return RewriteFor(one);
    const Binding binding = BindingOf(one);
    const Clock& clock = *engine_.options().clock;
    const int64_t start = clock.NowNs();
    absl::StatusOr<Graph> graph =
        binding == two_->low_binding
            ? absl::StatusOr<Graph>(*two_->low.graph)
            : GraphBetween({*two_->low.graph, two_->low_binding},
                           {*two_->high.graph, two_->high_binding}, binding);
    if (graph.ok()) {
      return Rewritten{.graph = *std::move(graph),
                       .times = {.specialize_ns = clock.NowNs() - start}};
    }
    if (Wants(engine_.options().debug, LogModule::kCapture)) {
      engine_.options().debug->Say(LogModule::kCapture,
                                   absl::StrCat(StepLabel(one.tokens), " goes through all passes: ",
                                                std::string(graph.status().message())));
    }
    return RewriteFor(one);
  }

  // Compiles, prepares and primes `one`; steps that depend on the recipes before it, in its turn.
  absl::Status Capture(Rewritten graph, Turns::Turn& turn, StepRecipe& one) {
    const RecipeKey key = KeyOf(one);
    // A kernel that timing has shown to be the fastest may take the last room for a second form of
    // weights.
    if (was_timed_) turn.Await();
    ASSIGN_OR_RETURN(std::unique_ptr<Recipe> compiled,
                     Assemble(std::move(graph), key, OptionsFor(key)));
    turn.Await();
    compiled->note = {.model = model_.id().name,
                      .version = model_.id().version,
                      .bucket = StepLabel(one.tokens),
                      .reason = std::string(CompileReasonName(CompileReason::kWarmup))};
    one.recipe = std::move(compiled);
    ASSIGN_OR_RETURN(const auto parameters, model_.owner()->parameters().TableFor(one.recipe));
    RETURN_IF_ERROR(PrimeRecipe(*one.recipe, *parameters, stream_));
    const CompileTimes& times = one.recipe->times;
    const std::string hex = one.recipe->key.hex();
    model_.owner()->observer().On(CompileRecord{.reason = CompileReason::kWarmup,
                                                .bucket = one.recipe->note.bucket,
                                                .recipe = hex,
                                                .phases = {.specialize_ns = times.specialize_ns,
                                                           .passes_ns = times.passes_ns,
                                                           .plan_ns = times.plan_ns,
                                                           .bind_ns = times.bind_ns}});
    return absl::OkStatus();
  }

  const Engine& engine_;
  const Model& model_;
  const ModelVariant& variant_;
  const Device& device_;  // the tokens of a sequence are computed by recipes of many sizes
  Stream& stream_;
  const Shard shard_;
  int lanes_ = 1;
  bool was_timed_ = false;  // some kernels were
  std::once_flag two_made_;
  std::optional<Two> two_;
};

}  // namespace

absl::StatusOr<StepRecipes> StepRecipes::Make(const Engine& engine, const Model& model,
                                              PagedForm& form, int64_t most_tokens,
                                              int64_t most_picks, Stream& stream,
                                              const Shard& shard) {
  auto variant = std::make_shared<ModelVariant>();
  variant->graph = std::move(form.graph);
  variant->fingerprint = FingerprintGraph(*variant->graph);
  StepRecipes all;
  all.owner_ = model.owner();
  for (int64_t tokens = 1; tokens <= most_tokens; tokens *= 2) {
    all.recipes_.push_back({.tokens = tokens, .picks = std::min(tokens, most_picks)});
  }
  RETURN_IF_ERROR(Maker(engine, model, *variant, stream, shard).Make(all.recipes_));
  return all;
}

std::string StepLabel(int64_t tokens) { return absl::StrCat("g", tokens); }

const StepRecipe& StepRecipes::For(int64_t tokens) const {
  const auto fits = std::find_if(recipes_.begin(), recipes_.end(),
                                 [&](const StepRecipe& one) { return one.tokens >= tokens; });
  return fits == recipes_.end() ? recipes_.back() : *fits;
}

}  // namespace reprise
