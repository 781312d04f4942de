#include "runtime/engine/tune/tuner.h"

#include <map>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/cpu_clock.h"
#include "runtime/base/format_text.h"
#include "runtime/base/heap.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/capture/capture.h"
#include "runtime/engine/capture/capture_pool.h"
#include "runtime/engine/capture/stored_recipes.h"
#include "runtime/engine/model/model.h"
#include "runtime/engine/tune/background_throttle.h"
#include "runtime/engine/tune/trial_run.h"
#include "runtime/graph/graph.h"
#include "runtime/recipe/store.h"

namespace reprise {
namespace {

// The time that finding the choices took, as the value of their record: it is evicted last.
constexpr int64_t kRebuildNs = int64_t{60} * 1'000'000'000;

// Returns "[128, 384] x [384, 1536] + bias: gemm_avx512/short, 1.08 times as fast as gemm_avx512".
std::string FindingText(const TrialResult& result, const std::string& first) {
  const KernelChoice& choice = result.choice;
  return FormatText("%s: %s, %.2f times as fast as %s", result.shapes, choice.kernel,
                    static_cast<double>(choice.first_ns) / static_cast<double>(choice.ns), first);
}

std::string Times(size_t count, absl::string_view what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

// Returns the outcome of timing, for people.
std::string TuningText(const std::vector<TrialResult>& results, const CompiledPlan& plan) {
  if (results.empty()) return "by earlier timings";
  std::map<std::string, std::string> first;  // keyed by question
  for (const CompiledPlan::Question& question : plan.questions) {
    if (!question.text.empty()) first[question.text] = question.kernels.front();
  }
  std::vector<std::string> changed;
  for (const TrialResult& result : results) {
    const std::string& usual = first[result.choice.question];
    if (result.choice.kernel != usual) changed.push_back(FindingText(result, usual));
  }
  const std::string timed = Times(results.size(), "product");
  if (changed.empty()) return absl::StrCat(timed, " timed, the usual kernels are the fastest");
  return absl::StrCat(timed, " timed; ", absl::StrJoin(changed, "; "));
}

}  // namespace

void Tuner::ReadChoices() {
  if (options_.store == nullptr) return;
  const std::string device = options_.device->fingerprint();
  const RecordName name = ChoicesNameOf(device);
  const RecipeStore::Found found = options_.store->Read(name);
  if (!found.payload.has_value()) {
    if (found.miss == StoreMiss::kAbsent) return;  // the first start on this folder
    options_.log(absl::StrCat("kernels are timed again: ", StoreMissWords(found.miss),
                              found.detail.empty() ? "" : ": ", found.detail));
    return;
  }
  absl::StatusOr<std::vector<KernelChoice>> choices = DecodeChoices(*found.payload, device);
  if (!choices.ok()) {
    const std::string why(choices.status().message());
    if (absl::IsDataLoss(choices.status())) options_.store->NoteCorrupt(name, why);
    options_.log(absl::StrCat("kernels are timed again: ", why));
    return;
  }
  for (KernelChoice& choice : *choices) choices_.Set(std::move(choice));
}

bool Tuner::MayTune(const Model& model, const Recipe& recipe) const {
  if (recipe.untimed == 0 || options_.captures == nullptr) return false;
  if (model.IsFrozen(options_) || model.options().tune == TuneMode::kOff) return false;
  const GraphFingerprint& graph = model.packing() != nullptr && recipe.key.packing == kPacked
                                      ? model.packing()->fingerprint()
                                      : model.fingerprint();
  return recipe.key.graph.digest == graph.digest;
}

void Tuner::Want(const Model& model, const Recipe& recipe) {
  if (!MayTune(model, recipe)) return;
  const int64_t now_ns = options_.clock->NowNs();
  if (!queue_.Begin(recipe.key.hash, !recipe.note.bucketed, now_ns)) return;
  const auto job = [this, weak = std::weak_ptr<const Model>(model.shared_from_this()),
                    key = recipe.key, now_ns](Stream* stream) { Run(weak, key, now_ns, stream); };
  if (options_.captures->Add(CaptureUrgency::kTuning, job)) return;
  queue_.End(recipe.key.hash, absl::OkStatus(), now_ns);
}

void Tuner::Run(const std::weak_ptr<const Model>& weak, const RecipeKey& key, int64_t asked_ns,
                Stream* stream) {
  const std::shared_ptr<const Model> model = weak.lock();
  const std::shared_ptr<const Recipe> recipe = cache_.Peek(key);
  absl::Status status;
  // On every exit, the recipe may be wanted again.
  const absl::Cleanup end = [&] { queue_.End(key.hash, status, options_.clock->NowNs()); };
  // It is tuned where the replay that asked had begun before the exchange.
  if (stream != nullptr && model != nullptr && recipe != nullptr && MayTune(*model, *recipe)) {
    const ThreadCpuClock thread_clock;
    BackgroundThrottle throttle(ThrottleOptions(options_, asked_ns, thread_clock, [&] {
      // Evicted, or unloaded: this is the last reference to the model.
      return options_.captures->stopped() || model.use_count() == 1 || cache_.Peek(key) != recipe;
    }));
    const absl::StatusOr<bool> tuned = WithinMemory(
        [] { return "timing kernels"; }, [&] { return Tune(*model, recipe, *stream, throttle); });
    // The allocator would keep the trial's memory, which is more than recipes take: a millisecond.
    ReturnFreedMemory();
    if (!tuned.ok()) {
      status = tuned.status();
      model->Note(absl::StrCat("could not tune recipe ", key.hex(), " (", recipe->note.bucket,
                               "): ", std::string(tuned.status().message())));
    }
  }
}

absl::StatusOr<bool> Tuner::Tune(const Model& model, const std::shared_ptr<const Recipe>& recipe,
                                 Stream& stream, BackgroundThrottle& throttle) {
  const int64_t start_ns = options_.clock->NowNs();
  const RecipeKey& key = recipe->key;
  if (!throttle.Wait()) return false;
  CompiledPlan plan;
  RETURN_IF_ERROR(model.CompileAt(key, /*variant=*/nullptr, options_, &plan).status());
  const ThreadCpuClock thread_clock;
  TrialRun trial(model.owner()->parameters(), stream, throttle, thread_clock);
  absl::StatusOr<std::vector<TrialResult>> results =
      trial.Run(plan, choices_,
                [&](const CompiledPlan& other) { return model.RebindAt(other, key, options_); });
  if (absl::IsCancelled(results.status())) return false;
  RETURN_IF_ERROR(results.status());
  for (const TrialResult& result : *results) choices_.Set(result.choice);
  if (!results->empty()) KeepChoices();

  if (!throttle.Wait()) return false;
  CompiledPlan better_plan;
  ASSIGN_OR_RETURN(std::unique_ptr<Recipe> made,
                   model.CompileAt(key, /*variant=*/nullptr, options_, &better_plan));
  made->note = recipe->note;
  made->note.tuning = TuningText(*results, plan);
  const std::shared_ptr<const Recipe> better = std::move(made);
  ASSIGN_OR_RETURN(const auto parameters, model.owner()->parameters().TableFor(better));
  RETURN_IF_ERROR(model.CheckArena(*better));
  RETURN_IF_ERROR(PrimeRecipe(*better, *parameters, stream));
  if (!model.has_shape_inputs()) options_.on_primed(*better);
  if (!cache_.Replace(*recipe, better)) {
    if (cache_.Peek(key) != recipe) return false;
    return absl::ResourceExhaustedError("the recipe cache has no room for the better one");
  }
  if (options_.store != nullptr && options_.store->writable()) {
    KeepRecipe(options_, model, *better, better_plan, model.owner()->capture_ns());
  }
  model.owner()->observer().On(TunedRecipe{better->note.bucket});
  model.Note(FormatText("tuned recipe %s (%s) in %.1f ms (%.1f ms of a core): %s", key.hex(),
                        better->note.bucket,
                        static_cast<double>(options_.clock->NowNs() - start_ns) / 1e6,
                        static_cast<double>(throttle.spent_ns()) / 1e6, better->note.tuning));
  return true;
}

void Tuner::KeepChoices() const {
  if (options_.store == nullptr || !options_.store->writable()) return;
  const std::string device = options_.device->fingerprint();
  // The store has noted the error.
  options_.store
      ->Update(ChoicesNameOf(device), kRebuildNs,
               [&](const std::string& stored) {
                 // Other daemons on this folder may have timed kernels that this one did not.
                 KernelChoices all;
                 const auto theirs = DecodeChoices(stored, device);
                 if (theirs.ok()) {
                   for (const KernelChoice& choice : *theirs) all.Set(choice);
                 }
                 for (KernelChoice& choice : choices_.All()) all.Set(std::move(choice));
                 return EncodeChoices(device, all.All());
               })
      .IgnoreError();
}

}  // namespace reprise
