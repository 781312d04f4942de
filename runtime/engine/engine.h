// Engine: loads models, captures recipes on demand, replays them.
//
//   SteadyClock clock;
//   CpuDevice device(...);
//   HelperPool cores(AvailableCpus());
//   Engine engine({.device = &device, .clock = &clock, .cores = &cores}, observer);
//   auto model = engine.Load({.id = {"minilm", 1}, .path = "model.onnx"});
//   auto stream = Stream::Create({.cores = &cores, .max_threads = cores.cores()});
//   Response response = engine.RunOne(**model, request, **stream);
//
// Ownership: the engine borrows device, clock, cores and observer; they outlive it. Models and
// recipes are shared. Threads: all methods from any thread; a Stream belongs to one caller at a
// time.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/clock.h"
#include "runtime/base/debug_log.h"
#include "runtime/device/device.h"
#include "runtime/engine/audit/auditor.h"
#include "runtime/engine/batch/batch_plan.h"
#include "runtime/engine/batch/miss_policy.h"
#include "runtime/engine/batch/slice_prover.h"
#include "runtime/engine/batch/split_rows.h"
#include "runtime/engine/capture/captures.h"
#include "runtime/engine/metrics/engine_metrics.h"
#include "runtime/engine/metrics/metrics_file.h"
#include "runtime/engine/model/eager_cache.h"
#include "runtime/engine/model/model.h"
#include "runtime/engine/profile.h"
#include "runtime/engine/replay/stream.h"
#include "runtime/engine/session_options.h"
#include "runtime/engine/tune/tuner.h"
#include "runtime/engine/types/engine_options.h"
#include "runtime/engine/types/graph_history.h"
#include "runtime/engine/types/miss_report.h"
#include "runtime/engine/types/observer.h"
#include "runtime/engine/types/request.h"
#include "runtime/engine/usage_keeper.h"
#include "runtime/recipe/cache.h"
#include "runtime/recipe/kernel_choices.h"
#include "runtime/recipe/store.h"

namespace reprise {

struct ImportedModel;

// A recipe in the cache, for people: recipe->note says which path captured it and why.
struct CachedRecipe {
  std::shared_ptr<const Recipe> recipe;
  int64_t replays = 0;
  std::chrono::system_clock::time_point created;
  std::chrono::system_clock::time_point last_used;
};

struct LoaderContext;
class BatchRun;
class Session;

class Engine {
 public:
  Engine(const EngineOptions& options, Observer& observer);
  ~Engine();

  // Returns the cores that replays of `model` run on: its own, or those of all models; null: none.
  HelperPool* CoresOf(const Model& model) const {
    return model.options().cores == nullptr ? options_.cores : model.options().cores.get();
  }

  // Imports, analyses and certifies; takes tens to hundreds of milliseconds. Errors: NOT_FOUND for
  // a missing file, INVALID_ARGUMENT and UNIMPLEMENTED as the importer says.
  absl::StatusOr<std::shared_ptr<Model>> Load(ModelOptions options);
  // Loads a model that is in no file: one that was imported (ImportOnnxBytes), or a graph that the
  // program has built (see ModelOfGraph). `options.path` is not looked at.
  absl::StatusOr<std::shared_ptr<Model>> Load(ModelOptions options, ImportedModel imported);
  // Loads the bytes of an ONNX file, which are copied. Weights in other files are an error.
  absl::StatusOr<std::shared_ptr<Model>> LoadBytes(ModelOptions options, absl::string_view bytes);

  // Makes a session: one recipe of `model`, bound to memory that stays where it is, so that
  // replaying it takes no argument. See session.h. Captures the recipe now where it is not ready.
  absl::StatusOr<std::unique_ptr<Session>> Bind(std::shared_ptr<const Model> model,
                                                const AxisSizes& sizes,
                                                SessionOptions options = {});

  // Decides how `plan` will run. Null: Run will not wait for anything. Otherwise a recipe is being
  // captured on the capture threads, and `ready` is called once, on one of them, when it is in the
  // cache or could not be made: plan again then, with the ticket for which the requests have
  // waited. The same holds where padding is not proved yet at the size of the plan; `ready` comes
  // from the thread that proves it. Never blocks.
  std::shared_ptr<CaptureTicket> Prepare(BatchPlan& plan, std::function<void(absl::Status)> ready);

  // Captures the recipe of `sizes` (by axis label; of a packed model one of Model::AllBuckets(), or
  // those of a request by itself) before a request needs it, for `reason`, if it is not ready;
  // `done` is called once, on a capture thread, or on this one where nothing is to be done. Works
  // on frozen models too.
  // `buckets`: of which `sizes` is one; null: the buckets in force.
  void CaptureAhead(const Model& model, const AxisSizes& sizes, CompileReason reason,
                    CaptureUrgency urgency, std::function<void(absl::Status)> done,
                    std::shared_ptr<const BucketPolicy> buckets = nullptr);

  // Makes the recipes that `model` captured for buckets that are not in force any more the first to
  // leave the cache; they leave it when the set changes again. Replays that hold them are not
  // disturbed.
  void RetireRecipes(const Model& model);

  // Replays one batch, capturing the recipe first, on this thread, if `plan` was not prepared and
  // nothing ready serves it. Responses are in the order of `requests`, which must be the requests
  // of `plan`, in its order. One request's bad data fails that request alone. `stop`: set by others
  // when no client waits for any of the responses, which are CANCELLED then; a request that exceeds
  // the limits of its model is RESOURCE_EXHAUSTED.
  std::vector<Response> Run(const BatchPlan& plan, absl::Span<const Request* const> requests,
                            Stream& stream, StopFlag* stop = nullptr);

  // Measures, splits by rows where needed, runs, joins. For callers without a scheduler.
  Response RunOne(const Model& model, const Request& request, Stream& stream);

  // Answers `request`, which `shape` measured, alone, at its exact size, with a recipe that is kept
  // nowhere; nothing counts that. Not for a model that is cut.
  Response Recompute(const Model& model, const RequestShape& shape, const Request& request,
                     Stream& stream);

  // Returns the symbolic graph, after the load passes, that recipes are compiled from: of padded
  // requests or of packed ones. A model which is cut has a graph that ends at its cuts.
  static const Graph& SymbolicGraph(const Model& model, bool packed);

  // Returns the recipe of `request`'s exact shapes, compiled for the caller alone, and a frame of
  // it on `stream` that holds the request. `packed`: the recipe of a packed replay that the request
  // fills. INVALID_ARGUMENT where the request overrides an initialiser, or is not packed.
  absl::StatusOr<FilledFrame> Fill(const Model& model, const Request& request, Stream& stream,
                                   bool packed = false) const;
  // Times every launch of the frame that Fill makes, on one thread.
  absl::StatusOr<RecipeProfile> Profile(const Model& model, const Request& request, Stream& stream,
                                        int repeats, bool packed = false) const;

  // Compiles the recipe of `sizes` (by position in Model::axes(); `packed`: tokens and segments)
  // without keeping, preparing or running it: for people. Not for a model with shape inputs.
  // Returns the errors of Compile.
  absl::StatusOr<std::unique_ptr<const Recipe>> CompileAt(const Model& model,
                                                          const std::vector<int64_t>& sizes,
                                                          bool packed = false) const;

  std::vector<CachedRecipe> ListRecipes() const;

  // Returns the graphs of a recipe, which keeps none: made again from its model. Where that is not
  // loaded any more, and after a cut, they are made from its key, which has no names. For people.
  RecipeGraphs GraphsOf(const Recipe& recipe) const;

  // Writes down how much the recipes of all models are used: see UsageKeeper.
  void SaveUsage(UsageKeeper::When when);

  // Returns the bytes that the cache counts for its recipes.
  int64_t cache_bytes() const { return cache_.bytes(); }
  // Returns the bytes of the parameters of all models.
  int64_t parameter_bytes() const { return parameter_budget_->used(); }
  const MissReport& misses() const { return misses_; }
  // Writes EngineOptions::metrics_file now. FAILED_PRECONDITION where that is empty, UNAVAILABLE
  // where it cannot be written.
  absl::Status WriteMetrics() const;
  const EngineOptions& options() const { return options_; }
  // Returns the same for the preparations of eager runs.
  std::vector<CachedRecipe> ListEager() const;

 private:
  // Run, without a net: an exception is every request's error.
  void RunBatch(const BatchPlan& plan, absl::Span<const Request* const> requests, Stream& stream,
                StopFlag* stop, std::vector<Response>& responses);
  // Answers request `i` alone, at its exact size and without a recipe: its replay failed for a
  // datum that may be the padding's.
  void RunExact(const BatchPlan& plan, const Request& request, size_t i, Stream& stream,
                StopFlag* stop, Response& response);
  // Runs the tail of the plan's model for request `i`, which had its replay.
  void RunTail(const BatchPlan& plan, const BatchRun& run, const Request& request, size_t i,
               Stream& stream, Response& response);
  // Looks at the model's traffic, in the background, when that is due: its buckets may change.
  void FollowTraffic(const Model& model);
  LoaderContext MakeLoaderContext() const;
  std::unique_ptr<MetricsFile> MakeMetricsFile() const;
  // Compiles a recipe for people; where there is a metrics file it is one of its captures.
  absl::StatusOr<std::unique_ptr<Recipe>> CompileCounted(const Model& model,
                                                         const BatchTarget& target,
                                                         const RecipeKey& key) const;
  // `has_past`: models of this name are versions of each other, so that a capture says how this one
  // differs from the last. Graphs that a program builds are not.
  absl::StatusOr<std::shared_ptr<Model>> LoadAs(ModelOptions options,
                                                std::optional<ImportedModel> imported,
                                                bool has_past);

  EngineOptions options_;
  const std::unique_ptr<EngineMetrics> metrics_;  // null: nothing is counted
  Observer& observer_;
  const std::unique_ptr<MemoryBudget> parameter_budget_;
  RecipeCache cache_;
  EagerCache eager_;
  mutable MissReport misses_;                        // synchronises itself
  const std::unique_ptr<MetricsFile> metrics_file_;  // null: there is none
  KernelChoices choices_;
  Tuner tuner_;
  Captures captures_;
  const SliceProver slices_;
  MissPolicy miss_policy_;
  Auditor auditor_;
  UsageKeeper usage_;
  std::atomic<int64_t> next_batch_{1};
  // Returns the texts of the recipes in memory that were captured for the graph of `model`.
  std::set<std::string> RecipesOf(const Model& model) const;
  // Returns the model that was loaded under `name` last, while it is there; null without one.
  std::shared_ptr<const Model> LoadedBefore(const std::string& name) EXCLUDES(models_mutex_);
  // Returns the graph that was served under `name` last; nullopt where none is known.
  std::optional<Graph> GraphBefore(const std::string& name) EXCLUDES(models_mutex_);
  // Returns how `program` differs from the one that was loaded before it under `name`; null: not at
  // all, or there was none.
  std::shared_ptr<const GraphChange> ChangeSince(const std::string& name,
                                                 const ModelProgram& program)
      EXCLUDES(models_mutex_);
  // Returns one of the loaded models that has the same graph; null: there is none.
  std::shared_ptr<const Model> HeirOf(const Model& gone) EXCLUDES(models_mutex_);

  GraphHistory history_;
  mutable Mutex models_mutex_;
  std::vector<std::weak_ptr<const Model>> models_ GUARDED_BY(models_mutex_);
};

}  // namespace reprise
