#include "runtime/engine/engine.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/batch_run.h"
#include "runtime/engine/bucket_change.h"
#include "runtime/engine/certifier.h"
#include "runtime/engine/data_error.h"
#include "runtime/engine/model_loader.h"
#include "runtime/engine/packed_frame.h"
#include "runtime/engine/slice_proof.h"
#include "runtime/engine/tail_run.h"
#include "runtime/recipe/compiler.h"

namespace reprise {
namespace {

// Output `index` of all parts, one behind the other along dim `dim`; without such a dim every part
// holds the same and the first is kept. What was joined is let go of.
void JoinOutput(size_t index, int dim, std::vector<Response>& parts, OutputTensor& output) {
  const bool is_wanted = !output.shape.empty();
  if (dim < 0 || !is_wanted) return;
  int64_t outer = 1;
  for (int d = 0; d < dim; ++d) outer *= output.shape[d];
  size_t bytes = output.bytes.size();
  for (size_t p = 1; p < parts.size(); ++p) {
    const OutputTensor& more = parts[p].outputs[index];
    bytes += more.bytes.size();
    output.shape[dim] += more.shape[dim];
  }
  if (bytes == output.bytes.size()) return;  // no dim has elements
  std::string joined;
  joined.reserve(bytes);
  for (int64_t i = 0; i < outer; ++i) {
    const auto append = [&](const std::string& of) {
      const size_t piece = of.size() / outer;
      joined.append(of, i * piece, piece);
    };
    append(output.bytes);
    for (size_t p = 1; p < parts.size(); ++p) {
      std::string& more = parts[p].outputs[index].bytes;
      append(more);
      if (i + 1 == outer) std::string().swap(more);
    }
  }
  output.bytes = std::move(joined);
}

}  // namespace

Engine::Engine(const EngineOptions& options, Observer& observer)
    : options_(options),
      observer_(observer),
      parameter_budget_(std::make_unique<MemoryBudget>(options.parameter_bytes)),
      cache_(options.cache_bytes, *options.clock),
      eager_(options.eager_cache_bytes, *options.clock),
      tuner_(options_, cache_, choices_),
      captures_(options_, cache_, misses_, options.captures, tuner_),
      usage_(options_, cache_) {
  options_.choices = &choices_;
  tuner_.ReadChoices();
}

Engine::~Engine() = default;

LoaderContext Engine::MakeLoaderContext() const {
  return {.device = options_.device,
          .clock = options_.clock,
          .observer = &observer_,
          .cores = options_.cores,
          .parameter_budget = parameter_budget_.get(),
          .store = options_.store,
          .log = options_.log};
}

void Engine::ConfirmPadding(const Model& model) const {
  // Requests wait for the end of it.
  if (!WhereMemoryAllows([&] { Certifier(MakeLoaderContext()).Confirm(model); })) {
    model.padding_.GiveUp();
  }
  if (model.options().precision != Precision::kExact) model.owner()->parameters().DropUnused();
}

absl::StatusOr<std::shared_ptr<Model>> Engine::Load(ModelOptions options) {
  const ModelLoader loader(MakeLoaderContext());
  const ModelId id = options.id;
  ASSIGN_OR_RETURN(std::unique_ptr<Model> model,
                   WithinMemory([&] { return absl::StrCat("loading model '", id.name, "'"); },
                                [&] { return loader.Load(std::move(options)); }));
  // What was read while it changed may be anything.
  RETURN_IF_ERROR(model->owner()->parameters().FilesIntact(options_.clock->NowNs()));
  model->ready_ = cache_.IndexOf(model->fingerprint_);
  if (model->packing_ != nullptr) {
    model->packing_->SetReady(cache_.IndexOf(model->packing_->fingerprint()));
  }
  model->log_ = options_.log;
  // When the last user lets go, the recipes that the model captured leave the cache; or they are
  // those of its successor, a model of the same graph.
  const std::shared_ptr<Model> loaded(model.release(), [this](Model* gone) {
    WhereMemoryAllows([&] { usage_.Save(*gone, UsageKeeper::When::kNow); });
    usage_.Forget(*gone);
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

std::shared_ptr<const Model> Engine::HeirOf(const Model& gone) {
  MutexLock lock(models_mutex_);
  for (const auto& one : models_) {
    std::shared_ptr<const Model> model = one.lock();
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
                                  Stream& stream) {
  std::vector<Response> responses(requests.size());
  const absl::Status ran = WithinMemory(
      [&] { return absl::StrCat("a request for model '", plan.model().id().name, "'"); },
      [&] {
        RunBatch(plan, requests, stream, responses);
        return absl::OkStatus();
      });
  if (!ran.ok()) {
    for (Response& response : responses) response = Response{.status = ran};
  }
  return responses;
}

void Engine::RunBatch(const BatchPlan& plan, absl::Span<const Request* const> requests,
                      Stream& stream, std::vector<Response>& responses) {
  std::optional<BatchPlan::Resolution> prepared = plan.resolution_;
  const RequestShape& first = plan.shapes_[0];
  if (first.spread && !plan.packed()) {
    if (const absl::Status apart = CheckSpread(plan.model(), first); !apart.ok()) {
      prepared = BatchPlan::Resolution{.status = apart, .decided = true};
    }
  }
  BatchPlan::Resolution resolution = prepared.has_value() ? *std::move(prepared) : Resolve(plan);
  if (!resolution.decided && !MayCaptureFor(plan)) resolution.status = RefuseMiss(plan);
  const bool eager = resolution.outcome == CaptureOutcome::kEager;
  BatchRun run(options_, cache_, eager_, misses_, plan, std::move(resolution), requests, stream);
  responses = run.Run(next_batch_++);
  for (size_t i = 0; i < responses.size(); ++i) {
    if (!responses[i].status.ok() || run.tail() == nullptr) continue;
    const absl::Status finished = WithinMemory(
        [&] { return absl::StrCat("a request for model '", plan.model().id().name, "'"); },
        [&] {
          TailRun({.options = options_,
                   .cache = cache_,
                   .eager = eager_,
                   .captures = captures_,
                   .misses = misses_,
                   .model = plan.model(),
                   .tail = *run.tail(),
                   .shape = plan.shapes()[i],
                   .stream = stream})
              .Run(*requests[i], run.recipe(), responses[i]);
          return absl::OkStatus();
        });
    if (finished.ok()) continue;
    responses[i].outputs.clear();
    responses[i].status = finished;
  }
  if (run.replay_ns() == 0) return;
  // The answers are there: what was learnt on the way is left out where there is no memory for it.
  WhereMemoryAllows([&] {
    if (first.in_new_slice) AwaitSlice(plan.model(), first, CaptureUrgency::kBehind, nullptr);
    plan.model().owner()->EarnRoom(run.replay_ns());
    if (!eager) tuner_.Want(plan.model(), run.recipe());
    NoteLosses(plan, run.target(), eager, run.replay_ns());
    FollowTraffic(plan.model());
  });
}

Response Engine::RunOne(const Model& model, const Request& as_sent, Stream& stream) {
  Request request = as_sent;
  model.SpreadRows(request);
  absl::StatusOr<RequestShape> shape = model.Measure(request);
  if (!shape.ok()) return {.status = shape.status()};
  if (shape->in_new_slice && options_.captures == nullptr) {
    AwaitSlice(model, *shape, CaptureUrgency::kUrgent, nullptr);
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

const Graph& Engine::SymbolicGraph(const Model& model, bool packed) {
  return packed ? model.packing()->graph() : model.graph_;
}

absl::StatusOr<FilledFrame> Engine::Fill(const Model& model, const Request& request, Stream& stream,
                                         bool packed) const {
  ASSIGN_OR_RETURN(const RequestShape shape, model.Measure(request));
  if (!shape.overrides.empty()) {
    return absl::InvalidArgumentError("a recipe by itself takes no value for an initialiser");
  }
  if (packed && !model.Packs(shape)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request is not packed: ", model.packing_refusal()));
  }
  BatchTarget target = {.sizes = shape.sizes, .packed = packed};
  if (packed) target.sizes = {shape.tokens, shape.rows};
  FilledFrame filled;
  ASSIGN_OR_RETURN(filled.recipe,
                   model.CompileAt(model.KeyAt(target, shape, nullptr), nullptr, options_));
  const Recipe& recipe = *filled.recipe;
  ASSIGN_OR_RETURN(filled.parameters, model.owner_->parameters().TableFor(filled.recipe));
  RETURN_IF_ERROR(stream.Reserve(recipe));
  filled.errors = std::make_unique<FirstDataError>(recipe);
  filled.frame = stream.MakeFrame(recipe, filled.parameters->addresses(), filled.errors.get());
  if (packed) {
    filled.frame.live_rows = shape.tokens;
    filled.frame.live_segments = shape.rows;
    const PackedPart part = {.request = &request,
                             .rows = shape.rows,
                             .length = shape.sizes[model.packing()->sequence_axis()]};
    GatherPacked(recipe, model.recipe_inputs_, {&part, 1}, std::nullopt, stream.inputs());
    return filled;
  }
  for (size_t i = 0; i < recipe.inputs.size(); ++i) {
    const TensorSlot& slot = recipe.inputs[i];
    if (slot.bytes == 0) continue;
    std::memcpy(stream.inputs() + slot.offset, request.inputs[model.recipe_inputs_[i]].data,
                slot.bytes);
  }
  return filled;
}

absl::StatusOr<RecipeProfile> Engine::Profile(const Model& model, const Request& request,
                                              Stream& stream, int repeats, bool packed) const {
  ASSIGN_OR_RETURN(const FilledFrame filled, Fill(model, request, stream, packed));
  return ProfileRecipe(
      filled.recipe, filled.frame, [&] { stream.Replay(*filled.recipe, filled.frame); }, repeats,
      *options_.clock);
}

absl::StatusOr<std::unique_ptr<const Recipe>> Engine::CompileAt(const Model& model,
                                                                const std::vector<int64_t>& sizes,
                                                                bool packed) const {
  const BatchTarget target = {.sizes = sizes, .packed = packed};
  return model.CompileAt(model.KeyAt(target, RequestShape(), nullptr), nullptr, options_);
}

void Engine::FollowTraffic(const Model& model) {
  if (options_.captures == nullptr || !model.learner().BeginLook()) return;
  const auto look = [this, shared = model.shared_from_this()](Stream* stream) {
    if (stream == nullptr) return shared->learner().EndLook();
    BucketChange::Look(*this, shared);
  };
  if (!options_.captures->Add(CaptureUrgency::kBehind, look)) model.learner().EndLook();
}

void Engine::LookAtSlice(const Model& model, const SizeSlices::Slice& slice) const {
  const absl::Status holds = WithinMemory([] { return "looking at sizes that decide something"; },
                                          [&] { return SliceProof(model, slice).Run(); });
  SizeSlices& slices = *model.slices();
  WhereMemoryAllows([&] {
    constexpr size_t kMostTold = 20;
    if (holds.ok() || slices.refused() > kMostTold) return;
    std::string sizes;
    for (size_t i = 0; i < slice.size(); ++i) {
      if (slice[i] == SizeSlices::kFree) continue;
      absl::StrAppend(&sizes, sizes.empty() ? "" : ", ", model.axes()[i].label, " ", slice[i]);
    }
    model.Note(absl::StrCat("requests of ", sizes, " run exact: ", std::string(holds.message())));
  });
  slices.Learn(slice, holds);
}

std::shared_ptr<CaptureTicket> Engine::AwaitSlice(const Model& model, const RequestShape& shape,
                                                  CaptureUrgency urgency,
                                                  std::function<void(absl::Status)> ready) {
  SizeSlices& slices = *model.slices();
  const SizeSlices::Slice slice = slices.SliceOf(shape.sizes);
  std::function<void()> done;
  if (ready != nullptr) done = [ready = std::move(ready)] { ready(absl::OkStatus()); };
  CapturePool* const pool = options_.captures;
  const auto job = [this, slice, shared = model.shared_from_this()](Stream* stream) {
    if (stream != nullptr) return LookAtSlice(*shared, slice);
    shared->slices()->Learn(slice, absl::UnavailableError("the server is stopping"));
  };
  bool begun = false;
  const bool waits = slices.Await(
      slice, std::move(done), [&] { return begun = pool == nullptr || pool->Add(urgency, job); });
  if (begun && pool == nullptr) LookAtSlice(model, slice);
  return waits ? std::make_shared<CaptureTicket>(CaptureTicket::Of::kPaddingProof) : nullptr;
}

absl::Status Engine::CheckSpread(const Model& model, const RequestShape& shape) const {
  if (model.slices() == nullptr) return absl::OkStatus();
  SizeSlices& slices = *model.slices();
  const SizeSlices::Slice slice = slices.SliceOf(shape.sizes);
  // Whoever else may be at it: the answer hangs on it.
  if (slices.Find(shape.sizes) == SizeSlices::State::kUnknown) LookAtSlice(model, slice);
  if (slices.Find(shape.sizes) == SizeSlices::State::kHolds) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "an input has 1 row and another one ", shape.rows,
      ": at these sizes the rows of a request see each other, so that none stands for others (",
      slices.FindWithReason(slice).why, ")"));
}

void Engine::RetireRecipes(const Model& model) {
  cache_.Retire(model.owner(), [&](const Recipe& recipe) {
    return recipe.note.bucket == "exact" || model.FindBucket(recipe.note.bucket).has_value();
  });
}

std::vector<CachedRecipe> Engine::ListRecipes() const {
  std::vector<CachedRecipe> result;
  for (RecipeCache::Entry& entry : cache_.Entries()) {
    result.push_back({std::move(entry.recipe), entry.uses, entry.created, entry.last_used});
  }
  return result;
}

std::vector<RequestPart> SplitRows(const Model& model, const Request& request,
                                   const RequestShape& shape, int64_t max_rows) {
  std::vector<RequestPart> parts;
  for (int64_t first = 0; first < shape.rows; first += max_rows) {
    const int64_t count = std::min(max_rows, shape.rows - first);
    RequestPart part = {.request = request, .shape = shape};
    part.shape.bytes = 0;
    for (size_t i = 0; i < part.request.inputs.size(); ++i) {
      InputTensor& tensor = part.request.inputs[i];
      if (tensor.data == nullptr) continue;
      const auto element_bytes = static_cast<int64_t>(DTypeSize(model.inputs()[i].dtype));
      if (!tensor.shape.empty()) {
        const int64_t row_bytes = NumElements(tensor.shape) / tensor.shape[0] * element_bytes;
        tensor.data = static_cast<const char*>(tensor.data) + first * row_bytes;
        tensor.shape[0] = count;
      }
      part.shape.bytes += NumElements(tensor.shape) * element_bytes;
    }
    part.shape.rows = part.shape.sizes[model.batch_axis()] = count;
    part.shape.tokens = model.measure().Elements(part.shape.sizes);
    if (auto changed = model.MeasureAgain(part.shape)) part.shape = *std::move(changed);
    parts.push_back(std::move(part));
  }
  return parts;
}

Response JoinRows(const Model& model, std::vector<Response> parts) {
  for (Response& part : parts) {
    if (!part.status.ok()) return std::move(part);
  }
  Response joined = std::move(parts[0]);
  for (size_t i = 0; i < joined.outputs.size(); ++i) {
    JoinOutput(i, model.BatchDimOf(i), parts, joined.outputs[i]);
  }
  // A request that was split says the least usual of what its parts say.
  for (size_t p = 1; p < parts.size(); ++p) {
    const CaptureOutcome so_far = joined.info.capture;
    joined.info = parts[p].info;
    joined.info.capture = Harder(joined.info.capture, so_far);
  }
  return joined;
}

}  // namespace reprise
