#include "runtime/engine/engine.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/heap.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/batch/batch_run.h"
#include "runtime/engine/bucket_change.h"
#include "runtime/engine/capture/capture.h"
#include "runtime/engine/load/certifier.h"
#include "runtime/engine/load/model_loader.h"
#include "runtime/engine/metrics/compilations.h"
#include "runtime/engine/session.h"
#include "runtime/engine/tail/tail_run.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/graph_diff.h"
#include "runtime/onnx/importer.h"

namespace reprise {

Engine::Engine(const EngineOptions& options, Observer& observer)
    : options_(options),
      metrics_(options.metrics_file.empty() ? nullptr : std::make_unique<EngineMetrics>(observer)),
      observer_(metrics_ == nullptr ? observer : static_cast<Observer&>(*metrics_)),
      parameter_budget_(std::make_unique<MemoryBudget>(options.parameter_bytes)),
      cache_(options.cache_bytes, *options.clock),
      eager_(options.eager_cache_bytes, *options.clock),
      metrics_file_(MakeMetricsFile()),
      tuner_(options_, cache_, choices_),
      captures_(options_, cache_, misses_, options.captures,
                [this](const Model& model, const Recipe& recipe) { tuner_.Want(model, recipe); }),
      slices_(options_),
      miss_policy_(options_, cache_, captures_, slices_),
      auditor_(options_,
               [this](const Model& model, const RequestShape& shape, const Request& request,
                      Stream& stream) { return Recompute(model, shape, request, stream); }),
      usage_(options_, cache_) {
  options_.choices = &choices_;
  if (metrics_file_ != nullptr) {
    options_.on_capture = [this, next = options.on_capture](const MissRecord& record) {
      next(record);
      metrics_file_->OnCapture();
    };
    metrics_file_->Start();
  }
  tuner_.ReadChoices();
}

Engine::~Engine() = default;

std::unique_ptr<MetricsFile> Engine::MakeMetricsFile() const {
  if (metrics_ == nullptr) return nullptr;
  return std::make_unique<MetricsFile>(
      options_.metrics_file, options_.metrics_triggers,
      [this] { return ModelsText(metrics_->Counts(), misses_.Since(0)); }, options_.log);
}

absl::Status Engine::WriteMetrics() const {
  if (metrics_file_ == nullptr) {
    return absl::FailedPreconditionError("the engine has no metrics file");
  }
  return metrics_file_->WriteNow();
}

LoaderContext Engine::MakeLoaderContext() const {
  return {.device = options_.device,
          .clock = options_.clock,
          .observer = &observer_,
          .cores = options_.cores,
          .parameter_budget = parameter_budget_.get(),
          .store = options_.store,
          .debug = options_.debug,
          .log = options_.log};
}

absl::StatusOr<std::shared_ptr<Model>> Engine::Load(ModelOptions options) {
  return LoadAs(std::move(options), std::nullopt, /*has_past=*/true);
}

absl::StatusOr<std::shared_ptr<Model>> Engine::Load(ModelOptions options, ImportedModel imported) {
  return LoadAs(std::move(options), std::move(imported), /*has_past=*/false);
}

absl::StatusOr<std::shared_ptr<Model>> Engine::LoadBytes(ModelOptions options,
                                                         absl::string_view bytes) {
  ASSIGN_OR_RETURN(
      ImportedModel imported,
      WithinMemory([&] { return absl::StrCat("loading model '", options.id.name, "'"); },
                   [&] { return ImportOnnxBytes(bytes); }));
  return LoadAs(std::move(options), std::move(imported), /*has_past=*/true);
}

absl::StatusOr<std::shared_ptr<Model>> Engine::LoadAs(ModelOptions options,
                                                      std::optional<ImportedModel> imported,
                                                      bool has_past) {
  if (options_.eager) options.capture = CapturePolicy::kOff;
  LoaderContext context = MakeLoaderContext();
  context.index_of = [this](const GraphFingerprint& graph) { return cache_.IndexOf(graph); };
  context.change_since = [this, has_past](const std::string& name, const ModelProgram& program) {
    return has_past ? ChangeSince(name, program) : nullptr;
  };
  context.graph_before = [this](const std::string& name) { return GraphBefore(name); };
  const ModelLoader loader(context);
  const ModelId id = options.id;
  ASSIGN_OR_RETURN(
      std::unique_ptr<Model> model,
      WithinMemory([&] { return absl::StrCat("loading model '", id.name, "'"); },
                   [&] { return loader.Load(std::move(options), std::move(imported)); }));
  // A file that changed while it was read may have had any contents.
  RETURN_IF_ERROR(model->owner()->parameters().FilesIntact(options_.clock->NowNs()));
  // When the last user lets go, the recipes that the model captured leave the cache; or they become
  // its successor's, a model of the same graph.
  const std::shared_ptr<Model> loaded(model.release(), [this, has_past](Model* gone) {
    WhereMemoryAllows([&] { usage_.Save(*gone, UsageKeeper::When::kNow); });
    usage_.Forget(*gone);
    if (has_past) {
      WhereMemoryAllows(
          [&] { history_.Remember(gone->id().name, *gone->program().graph, RecipesOf(*gone)); });
    }
    const std::shared_ptr<const Model> heir = HeirOf(*gone);
    cache_.RemoveOwner(gone->owner(), heir == nullptr ? nullptr : heir->owner());
    eager_.Remove(gone->eager_share());
    delete gone;
  });
  MutexLock lock(models_mutex_);
  std::erase_if(models_, [](const auto& one) { return one.expired(); });
  models_.push_back(loaded);
  return loaded;
}

std::set<std::string> Engine::RecipesOf(const Model& model) const {
  std::set<std::string> recipes;
  const Packing* packing = model.packing();
  for (const RecipeCache::Entry& entry : cache_.Entries()) {
    const RecipeKey& key = entry.recipe->key;
    if (key.graph.digest == model.fingerprint().digest ||
        (packing != nullptr && key.graph.digest == packing->fingerprint().digest)) {
      recipes.insert(RecipeText(key));
    }
  }
  return recipes;
}

std::shared_ptr<const Model> Engine::LoadedBefore(const std::string& name) {
  // The last reference to a model may be held here: it is released after the lock, which the
  // destruction of a model takes.
  std::vector<std::shared_ptr<const Model>> held;
  MutexLock lock(models_mutex_);
  std::shared_ptr<const Model> before;
  for (const auto& one : models_) {
    held.push_back(one.lock());
    if (held.back() != nullptr && held.back()->id().name == name) before = held.back();
  }
  return before;
}

std::optional<Graph> Engine::GraphBefore(const std::string& name) {
  if (const auto before = LoadedBefore(name)) return *before->program().graph;
  return history_.GraphOf(name);
}

std::shared_ptr<const GraphChange> Engine::ChangeSince(const std::string& name,
                                                       const ModelProgram& program) {
  const std::shared_ptr<const Model> before = LoadedBefore(name);
  // It may still serve while this one replaces it.
  if (before != nullptr) {
    if (before->fingerprint().digest == program.fingerprint.digest) return nullptr;
    auto change = std::make_shared<GraphChange>();
    change->recipes = RecipesOf(*before);
    if (change->recipes.empty()) return nullptr;
    change->causes = DiffGraphs(*before->program().graph, *program.graph).causes;
    return change;
  }
  return history_.ChangeOf(name, *program.graph);
}

std::shared_ptr<const Model> Engine::HeirOf(const Model& gone) {
  std::vector<std::shared_ptr<const Model>> held;  // see LoadedBefore
  MutexLock lock(models_mutex_);
  for (const auto& one : models_) {
    const std::shared_ptr<const Model>& model = held.emplace_back(one.lock());
    if (model == nullptr || model->fingerprint().hash != gone.fingerprint().hash) continue;
    if (*model->fingerprint().text == *gone.fingerprint().text) return model;
  }
  return nullptr;
}

void Engine::SaveUsage(UsageKeeper::When when) {
  std::vector<std::weak_ptr<const Model>> models;
  {
    MutexLock lock(models_mutex_);
    models = models_;
  }
  for (const auto& one : models) {
    if (const std::shared_ptr<const Model> model = one.lock()) usage_.Save(*model, when);
  }
}

std::vector<Response> Engine::Run(const BatchPlan& plan, absl::Span<const Request* const> requests,
                                  Stream& stream, StopFlag* stop) {
  std::vector<Response> responses(requests.size());
  const absl::Status ran = WithinMemory(
      [&] { return absl::StrCat("a request for model '", plan.model().id().name, "'"); },
      [&] {
        RunBatch(plan, requests, stream, stop, responses);
        return absl::OkStatus();
      });
  if (!ran.ok()) {
    for (Response& response : responses) response = Response{.status = ran};
  }
  return responses;
}

void Engine::RunBatch(const BatchPlan& plan, absl::Span<const Request* const> requests,
                      Stream& stream, StopFlag* stop, std::vector<Response>& responses) {
  const Stream::OnCores on_cores(stream, plan.model().options().cores.get());
  std::optional<BatchPlan::Resolution> prepared = plan.resolution();
  const RequestShape& first = plan.shapes()[0];
  BatchPlan::Resolution resolution =
      prepared.has_value() ? *std::move(prepared) : miss_policy_.Resolve(plan);
  if (!resolution.decided && !miss_policy_.MayCaptureFor(plan)) {
    resolution.status = miss_policy_.Refusal(plan);
  }
  const bool eager = resolution.outcome == CaptureOutcome::kEager;
  BatchRun run(options_, cache_, eager_, misses_, plan, std::move(resolution), requests, stream,
               stop);
  responses = run.Run(next_batch_++);
  for (size_t i = 0; i < responses.size(); ++i) {
    if (!responses[i].status.ok() || run.tail() == nullptr) continue;
    RunTail(plan, run, *requests[i], i, stream, responses[i]);
  }
  for (const size_t i : run.doubtful()) {
    RunExact(plan, *requests[i], i, stream, stop, responses[i]);
  }
  if (run.replay_ns() == 0) return;
  // The answers are there: the rest only learns from them, and is left out where memory runs out.
  WhereMemoryAllows([&] {
    if (first.in_new_slice) slices_.Await(plan.model(), first, CaptureUrgency::kBehind, nullptr);
    plan.model().owner()->CreditReplay(run.replay_ns());
    if (!eager) tuner_.Want(plan.model(), run.recipe());
    miss_policy_.NoteLosses(plan, run.target(), eager, run.replay_ns());
    FollowTraffic(plan.model());
    auditor_.Consider(plan, run.target(), requests, responses);
  });
}

Response Engine::Recompute(const Model& model, const RequestShape& measured, const Request& request,
                           Stream& stream) {
  RequestShape shape = measured;
  shape.exact = shape.audit = true;
  BatchPlan alone(model);
  if (!alone.TryAdd(shape)) return {.status = absl::InternalError("a request does not fit alone")};
  const Request* const pointer = &request;
  BatchRun run(options_, cache_, eager_, misses_, alone,
               {.outcome = CaptureOutcome::kEager, .decided = true}, {&pointer, 1}, stream,
               /*stop=*/nullptr);
  std::vector<Response> responses = run.Run(/*batch=*/0);
  if (run.replay_ns() > 0) model.owner()->parameters().Forget(run.recipe());
  return std::move(responses[0]);
}

void Engine::RunExact(const BatchPlan& plan, const Request& request, size_t i, Stream& stream,
                      StopFlag* stop, Response& response) {
  RequestShape shape = plan.shapes()[i];
  shape.exact = true;
  BatchPlan alone(plan.model());
  if (!alone.TryAdd(shape)) return;
  alone.Resolve({.outcome = CaptureOutcome::kEager, .decided = true});
  const Request* const pointer = &request;
  std::vector<Response> answers(1);
  RunBatch(alone, {&pointer, 1}, stream, stop, answers);
  response = std::move(answers[0]);
}

void Engine::RunTail(const BatchPlan& plan, const BatchRun& run, const Request& request, size_t i,
                     Stream& stream, Response& response) {
  const ModelOptions& limits = plan.model().options();
  int64_t made_bytes = 0;
  const absl::Status finished = WithinMemory(
      [&] { return absl::StrCat("a request for model '", plan.model().id().name, "'"); },
      [&] {
        RunControl control(*options_.clock,
                           {.max_ns = limits.max_request_ns,
                            .max_bytes = limits.max_request_bytes,
                            .all = options_.data_memory},
                           request.gone);
        control.Begin(run.replay_ns());
        TailRun({.options = options_,
                 .cache = cache_,
                 .eager = eager_,
                 .captures = captures_,
                 .misses = misses_,
                 .model = plan.model(),
                 .tail = *run.tail(),
                 .shape = plan.shapes()[i],
                 .stream = stream,
                 .control = control})
            .Run(request, run.recipe(), response);
        made_bytes = control.most_bytes();
        return absl::OkStatus();
      });
  if (made_bytes > static_cast<int64_t>(2 * kMappedBytes)) {
    ReturnFreedEndOfThread();
    ReturnFreedMemory();
  }
  if (finished.ok()) return;
  response.outputs.clear();
  response.status = finished;
}

Response Engine::RunOne(const Model& model, const Request& as_sent, Stream& stream) {
  Request request = as_sent;
  model.SpreadRows(request);
  absl::StatusOr<RequestShape> shape = model.Measure(request);
  if (!shape.ok()) return {.status = shape.status()};
  if (shape->in_new_slice && options_.captures == nullptr) {
    slices_.Await(model, *shape, CaptureUrgency::kUrgent, nullptr);
    request = as_sent;
    model.SpreadRows(request);
    shape = model.Measure(request);
    if (!shape.ok()) return {.status = shape.status()};
  }
  const auto run = [&](const Request& part, const RequestShape& part_shape) {
    BatchPlan plan(model);
    if (!plan.TryAdd(part_shape)) {
      return Response{.status = absl::InvalidArgumentError(absl::StrCat(
                          "no bucket holds a request of ", part_shape.rows, " rows of ",
                          part_shape.tokens / std::max<int64_t>(1, part_shape.rows), " tokens"))};
    }
    const Request* pointer = &part;
    return std::move(Run(plan, {&pointer, 1}, stream)[0]);
  };
  const int64_t max_rows = model.MaxRows(*shape);
  if (shape->rows <= max_rows) return run(request, *shape);
  std::vector<Response> responses;
  for (const RequestPart& part : SplitRows(model, request, *shape, max_rows)) {
    responses.push_back(run(part.request, part.shape));
  }
  return JoinRows(model, std::move(responses));
}

std::shared_ptr<CaptureTicket> Engine::Prepare(BatchPlan& plan,
                                               std::function<void(absl::Status)> ready) {
  return miss_policy_.Prepare(plan, std::move(ready));
}

void Engine::CaptureAhead(const Model& model, const AxisSizes& sizes, CompileReason reason,
                          CaptureUrgency urgency, std::function<void(absl::Status)> done,
                          std::shared_ptr<const BucketPolicy> buckets) {
  miss_policy_.CaptureAhead(model, sizes, reason, urgency, std::move(done), std::move(buckets));
}

void Engine::FollowTraffic(const Model& model) {
  if (options_.captures == nullptr || !model.learner().BeginLook()) return;
  const auto look = [this, shared = model.shared_from_this()](Stream* stream) {
    if (stream == nullptr) return shared->learner().EndLook();
    BucketChange::Look(*this, shared);
  };
  if (!options_.captures->Add(CaptureUrgency::kBehind, look)) model.learner().EndLook();
}

void Engine::RetireRecipes(const Model& model) {
  cache_.Retire(model.owner(), [&](const Recipe& recipe) {
    return recipe.note.bucket == "exact" || model.FindBucket(recipe.note.bucket).has_value();
  });
}

absl::StatusOr<std::unique_ptr<Session>> Engine::Bind(std::shared_ptr<const Model> model,
                                                      const AxisSizes& sizes,
                                                      SessionOptions options) {
  const std::string name = model->id().name;
  const auto bind = [&]() -> absl::StatusOr<std::unique_ptr<Session>> {
    ASSIGN_OR_RETURN(const CaptureTarget target, Session::TargetOf(*model, sizes, options));
    // Captures run on a stream of their own: how much the session's has to hold shows after it.
    ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream,
                     Stream::Create({.cores = options_.cores, .huge_pages = false}));
    ASSIGN_OR_RETURN(CaptureResult captured,
                     CaptureRecipe(options_, cache_, *model, target, *stream));
    if (captured.record.has_value()) {
      options_.on_capture(*captured.record);
      misses_.Add(*std::move(captured.record));
    }
    return Session::Create(std::move(model), std::move(captured.recipe), options_.cores,
                           *options_.clock, options);
  };
  return WithinMemory([&] { return absl::StrCat("binding model '", name, "'"); }, bind);
}

}  // namespace reprise
