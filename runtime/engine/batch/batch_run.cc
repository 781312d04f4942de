#include "runtime/engine/batch/batch_run.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/capture/capture.h"
#include "runtime/engine/model/split_axes.h"
#include "runtime/engine/replay/gather.h"
#include "runtime/recipe/index_sources.h"

namespace reprise {
namespace {

int64_t ReadNs(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return int64_t{1'000'000'000} * time.tv_sec + time.tv_nsec;
}

// The share of the time since it was made in which the calling thread ran: less than 1 where it
// waited for a core, or was preempted. Asking the system twice takes some 800 ns.
class BusyMeter {
 public:
  BusyMeter() : real_ns_(ReadNs(CLOCK_MONOTONIC)), ran_ns_(ReadNs(CLOCK_THREAD_CPUTIME_ID)) {}
  double Share() const {
    const auto ran = static_cast<double>(ReadNs(CLOCK_THREAD_CPUTIME_ID) - ran_ns_);
    const auto real = static_cast<double>(ReadNs(CLOCK_MONOTONIC) - real_ns_);
    return real > 0 ? std::clamp(ran / real, 0.0, 1.0) : 1;
  }

 private:
  const int64_t real_ns_;
  const int64_t ran_ns_;
};

// Replays that are expected to take at least this long are metered. Shorter ones hardly ever lose
// time to others, and ReplayCost bounds the effect of the few that lose much, once it knows the
// means.
constexpr double kMeteredNs = 50e3;
constexpr int64_t kKnownReplays = 64;

// Floats alone: kernels of bytes may load whole vectors, after the last byte too. See
// Space::kInput for where floats may begin.
bool IsReadInPlace(const TensorSlot& slot, const InputTensor& tensor) {
  return slot.bytes > 0 && IsFloating(slot.dtype) && tensor.shape == slot.shape &&
         reinterpret_cast<uintptr_t>(tensor.data) % DTypeSize(slot.dtype) == 0;
}

}  // namespace

BatchRun::BatchRun(const EngineOptions& options, RecipeCache& cache, EagerCache& eager,
                   MissReport& misses, const BatchPlan& plan, BatchPlan::Resolution resolution,
                   absl::Span<const Request* const> requests, Stream& stream, StopFlag* stop)
    : options_(options),
      cache_(cache),
      eager_(eager),
      misses_(misses),
      plan_(plan),
      model_(plan.model()),
      requests_(requests),
      stream_(stream),
      stop_(stop),
      control_(*options.clock,
               {.max_ns = plan.model().options().max_request_ns,
                .max_bytes = plan.model().options().max_request_bytes,
                .all = options.data_memory},
               stop),
      resolution_(std::move(resolution)),
      target_(plan.target()) {
  REPRISE_CHECK(requests.size() == plan.shapes().size());
  int64_t row = 0;
  for (const RequestShape& shape : plan.shapes()) {
    first_row_.push_back(row);
    row += shape.rows;
    if (!plan.packed()) continue;
    packed_.push_back({.request = requests[packed_.size()],
                       .rows = shape.rows,
                       .length = shape.sizes[model_.packing()->sequence_axis()]});
  }
}

const std::vector<int>& BatchRun::RecipeInputs() const {
  return variant_ == nullptr ? model_.signature().recipe_inputs : variant_->recipe_inputs;
}

std::vector<Response> BatchRun::Run(int64_t batch) {
  std::vector<Response> responses(requests_.size());
  const absl::Status ready = FindRecipe();
  if (!ready.ok()) {
    for (size_t i = 0; i < responses.size(); ++i) {
      responses[i].status = WithMisfit(ready, plan_.shapes()[i].misfit);
    }
    return responses;
  }
  FirstDataError error(*recipe_);
  Frame frame = stream_.MakeFrame(*recipe_, parameters_->addresses(), &error);
  frame.live_rows = plan_.packed() ? plan_.live_tokens() : HasRows() ? plan_.rows() : 0;
  if (plan_.packed()) frame.live_segments = plan_.rows();
  BeginComputing();
  const int64_t start = options_.clock->NowNs();
  Gather();
  const int64_t gathered = options_.clock->NowNs();
  const Scatter scatter({.plan = plan_,
                         .recipe = *recipe_,
                         .target = target_,
                         .requests = requests_,
                         .first_row = first_row_,
                         .packed = packed_,
                         .all_wanted = tail() != nullptr,
                         .stream = stream_});
  if (responses.size() == 1) scatter.PlaceOutputs(responses[0]);
  const int64_t placed = options_.clock->NowNs();
  std::optional<BusyMeter> meter;
  if (IsMetered()) meter.emplace();
  if (const int ended = stream_.Replay(*recipe_, frame, nullptr, &control_); ended >= 0) {
    return Ended(ended);
  }
  const double busy = meter.has_value() ? meter->Share() : 1;
  const int64_t replayed = options_.clock->NowNs();
  if (const absl::Status intact = model_.owner()->parameters().FilesIntact(replayed);
      !intact.ok()) {
    return std::vector<Response>(responses.size(), Response{.status = intact});
  }
  // Where a launch failed there are no answers yet: nothing unwritten is copied.
  if (!error.failed()) scatter.Copy(frame, responses, 0, responses.size());
  if (error.any()) FailOffenders(error, frame, scatter, responses);
  const int64_t scattered = options_.clock->NowNs();

  replay_ns_ = replayed - placed;
  bool first = true;
  for (size_t i = 0; i < responses.size(); ++i) {
    ReplayInfo& info = responses[i].info;
    info.bucket = SaysBucket(i) ? target_.bucket : "exact";
    info.recipe = recipe_->key.hex();
    if (responses[i].status.ok()) info.capture = OutcomeOf(i, std::exchange(first, false));
    info.batch = batch;
    info.batch_size = plan_.rows();
    info.gather_ns = gathered - start;
    info.replay_ns = replay_ns_;
    info.scatter_ns = placed - gathered + scattered - replayed;
  }
  Observe(static_cast<int64_t>(static_cast<double>(replay_ns_) * busy));
  return responses;
}

bool BatchRun::SaysBucket(size_t i) const {
  if (!target_.exact || !target_.bucketed) return true;
  const std::vector<int64_t>& sizes = plan_.shapes()[i].sizes;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    if (!model_.axes()[axis].is_batch && sizes[axis] != target_.sizes[axis]) return true;
  }
  return false;
}

bool BatchRun::HasRows() const {
  return model_.batch_axis() >= 0 && !plan_.shapes()[0].splits_axes();
}

void BatchRun::BeginComputing() {
  control_.Begin();
  if (stop_ != nullptr) stop_->BeginComputing(std::max<int64_t>(options_.clock->NowNs(), 1));
}

std::vector<Response> BatchRun::Ended(int launch) const {
  const Launch& at = recipe_->launches[static_cast<size_t>(launch)];
  const absl::Status why = control_.Ended(absl::StrCat(at.node, " (", at.kernel, ")"));
  return std::vector<Response>(requests_.size(), Response{.status = why});
}

bool BatchRun::IsMetered() const {
  if (plan_.packed()) return false;  // Costs of packed replays are not learnt.
  return plan_.cost().replays() < kKnownReplays ||
         plan_.ExpectedNs(target_, plan_.rows()) >= kMeteredNs;
}

absl::Status BatchRun::FindRecipe() {
  RETURN_IF_ERROR(resolution_.status);
  variant_ = resolution_.variant;
  if (!resolution_.decided) {
    RETURN_IF_ERROR(Capture());
  } else if (resolution_.outcome == CaptureOutcome::kEager) {
    if (!plan_.packed()) {
      ASSIGN_OR_RETURN(target_, plan_.ExactTarget());
    }
    const RecipeKey key = model_.KeyAt(target_, plan_.shapes()[0], variant_.get());
    const auto prepare = [&]() -> absl::StatusOr<std::unique_ptr<Recipe>> {
      ASSIGN_OR_RETURN(std::unique_ptr<Recipe> recipe,
                       model_.CompileAt(key, variant_.get(), options_));
      recipe->note = {.model = model_.id().name, .version = model_.id().version, .bucket = "eager"};
      return recipe;
    };
    if (plan_.shapes()[0].audit) {
      ASSIGN_OR_RETURN(recipe_, prepare());
    } else {
      ASSIGN_OR_RETURN(recipe_, eager_.GetOrPrepare(key, model_.eager_share(), prepare));
    }
  } else {
    recipe_ = resolution_.recipe;
    if (resolution_.outcome == CaptureOutcome::kLarger) target_ = plan_.TargetOf(*recipe_);
  }
  absl::Status fits = model_.CheckArena(*recipe_);
  if (fits.ok()) {
    fits = stream_.ReserveForRequest(*recipe_,
                                     model_.has_shape_inputs() ? SizedBy::kData : SizedBy::kShapes);
  }
  // Each of several requests may fit by itself.
  if (absl::IsInvalidArgument(fits) && requests_.size() > 1) {
    return absl::ResourceExhaustedError(fits.message());
  }
  RETURN_IF_ERROR(fits);
  ParameterStore& parameters = model_.owner()->parameters();
  ASSIGN_OR_RETURN(parameters_, parameters.TableFor(recipe_));
  const std::vector<OwnValue>& own = plan_.shapes()[0].own_values;
  if (!own.empty()) {
    ASSIGN_OR_RETURN(parameters_, parameters.TableWith(*recipe_, *parameters_, own));
  }
  return absl::OkStatus();
}

absl::Status BatchRun::Capture() {
  const int64_t since_ns = options_.clock->NowNs();
  ASSIGN_OR_RETURN(CaptureResult result,
                   CaptureRecipe(options_, cache_, model_,
                                 plan_.CaptureTargetOf(plan_.target(), variant_), stream_));
  recipe_ = std::move(result.recipe);
  outcome_ = result.outcome;
  if (!result.record.has_value()) {
    // It came from the store: no thread captured, all waited.
    if (outcome_ == RecipeCache::Outcome::kCaptured) outcome_ = RecipeCache::Outcome::kWaited;
    return absl::OkStatus();
  }
  const int64_t waited_ns = options_.clock->NowNs() - since_ns;
  for (const RequestShape& shape : plan_.shapes()) result.record->AddWaiter(shape.id, waited_ns);
  options_.on_capture(*result.record);
  misses_.Add(*std::move(result.record));
  return absl::OkStatus();
}

CaptureOutcome BatchRun::OutcomeOf(size_t i, bool first) {
  const bool own_bucket = resolution_.outcome == CaptureOutcome::kReplayed;
  CaptureTicket* ticket = plan_.waited(i);
  if (ticket != nullptr && ticket->of_capture()) {
    // Where there are many buckets, a recipe that was captured for this one holds others as well.
    const bool its_own =
        own_bucket || (resolution_.outcome == CaptureOutcome::kLarger && model_.has_many_buckets());
    return its_own && ticket->Claim() ? CaptureOutcome::kCaptured : CaptureOutcome::kWaited;
  }
  const bool asked_eager = model_.options().capture == CapturePolicy::kOff ||
                           plan_.shapes()[0].on_miss == OnMiss::kEager;
  if (model_.has_empty_front() && resolution_.outcome == CaptureOutcome::kEager && !asked_eager) {
    return CaptureOutcome::kReplayed;  // The sections after it say how they ran.
  }
  if (!own_bucket) return resolution_.outcome;
  if (outcome_ == RecipeCache::Outcome::kHit) return CaptureOutcome::kReplayed;
  // One request of a capture reports it; its batch-mates waited for it.
  return outcome_ == RecipeCache::Outcome::kCaptured && first ? CaptureOutcome::kCaptured
                                                              : CaptureOutcome::kWaited;
}

void BatchRun::Gather() const {
  if (plan_.packed()) {
    return GatherPacked(*recipe_, RecipeInputs(), packed_, std::nullopt, stream_.inputs());
  }
  for (size_t slot = 0; slot < recipe_->inputs.size(); ++slot) {
    if (slot < RecipeInputs().size() && requests_.size() == 1) {
      const InputTensor& first = requests_[0]->inputs[RecipeInputs()[slot]];
      if (IsReadInPlace(recipe_->inputs[slot], first)) {
        stream_.PlaceInput(slot, static_cast<const std::byte*>(first.data));
        continue;
      }
    }
    CopyIn(slot, 0, requests_.size());
  }
}

void BatchRun::GatherOnly(size_t i) const {
  if (plan_.packed()) {
    return GatherPacked(*recipe_, RecipeInputs(), packed_, i, stream_.inputs());
  }
  for (size_t slot = 0; slot < recipe_->inputs.size(); ++slot) CopyIn(slot, i, i + 1);
}

double BatchRun::PaddingOf(const TensorSlot& slot, int position) const {
  const std::string& name = model_.inputs()[position].name;
  const auto& fills = model_.options().fills;
  const auto fill = fills.find(name);
  const double value = fill == fills.end() ? 0.0 : fill->second;
  const bool guard = absl::c_any_of(model_.axes(), [&](const ModelAxis& axis) {
    return absl::c_linear_search(axis.certificate.guards, name);
  });
  return stream_.poisons() && !guard && IsFloating(slot.dtype) ? kPoisonedPadding : value;
}

void BatchRun::WriteLive(size_t slot_index, size_t first, size_t last) const {
  const TensorSlot& slot = recipe_->inputs[slot_index];
  const auto& [axis, like] = model_.signature().live_places[slot_index - RecipeInputs().size()];
  auto* const rows = reinterpret_cast<uint8_t*>(stream_.inputs() + slot.offset);
  const int64_t size = slot.shape[1];
  std::memset(rows, 0, slot.bytes);
  for (size_t i = first; i < last; ++i) {
    const RequestShape& shape = plan_.shapes()[i];
    const int64_t row = FirstRow(i);
    const int64_t end = std::min(slot.shape[0], row + (model_.batch_axis() < 0 ? 1 : shape.rows));
    const int64_t own = like < 0 ? shape.sizes[axis] : requests_[i]->inputs[like].shape[1];
    for (int64_t r = row; r < end; ++r) {
      std::memset(rows + r * size, 1, static_cast<size_t>(std::min(size, own)));
    }
  }
}

void BatchRun::CopyIn(size_t slot_index, size_t first, size_t last) const {
  const TensorSlot& slot = recipe_->inputs[slot_index];
  if (slot.bytes == 0) return;
  if (slot_index >= RecipeInputs().size()) return WriteLive(slot_index, first, last);
  const int position = RecipeInputs()[slot_index];
  std::byte* const target = stream_.inputs() + slot.offset;
  int64_t sent = 0;
  for (size_t i = first; i < last; ++i) {
    sent += NumElements(requests_[i]->inputs[position].shape);
  }
  if (sent < NumElements(slot.shape)) {
    FillElements(slot.dtype, PaddingOf(slot, position), NumElements(slot.shape), target);
  }
  for (size_t i = first; i < last; ++i) {
    const InputTensor& tensor = requests_[i]->inputs[position];
    const Shape origin(slot.shape.size(), 0);
    Shape offset = origin;
    // Requests lie one after another along the batch axis, which a square input has in two dims, as
    // the outputs are cut (only certified batches have more than one).
    const std::vector<Dim>& dims = model_.inputs()[position].dims;
    for (size_t d = 0; d < offset.size() && requests_.size() > 1; ++d) {
      if (d == 0 || dims[d].symbol == model_.batch_symbol()) offset[d] = FirstRow(i);
    }
    CopyBlock({.shape = tensor.shape,
               .from_shape = tensor.shape,
               .from_offset = origin,
               .to_shape = slot.shape,
               .to_offset = offset,
               .element_bytes = DTypeSize(slot.dtype)},
              tensor.data, target);
  }
}

const Tail* BatchRun::tail() const {
  return variant_ == nullptr ? model_.tail() : variant_->tail.get();
}

absl::Status BatchRun::ErrorFor(const DataError& error, const Request& request) const {
  const bool of_request = error.input >= 0 && error.input < static_cast<int>(RecipeInputs().size());
  const std::string name =
      !of_request ? error.place
                  : absl::StrCat("input '", model_.inputs()[RecipeInputs()[error.input]].name, "'");
  // A text is refused because the model does not know it.
  const bool is_text =
      of_request ? model_.inputs()[RecipeInputs()[error.input]].text : error.input == kSomeText;
  if (is_text && request.texts != nullptr) {
    if (const auto text = request.texts->Text(error.value)) {
      return absl::InvalidArgumentError(absl::StrCat(of_request ? name : "a text", ": ",
                                                     TextForMessage(*text),
                                                     " is not one of the model's categories"));
    }
  }
  return ErrorOf(error, name);
}

bool BatchRun::Holds(const Request& request, int position, int64_t value) const {
  const InputTensor& tensor = request.inputs[position];
  if (tensor.data == nullptr) return false;
  const DType dtype = model_.inputs()[position].dtype;
  const size_t bytes = DTypeSize(dtype);
  std::array<std::byte, sizeof(int64_t)> sought = {};
  FillElements(dtype, static_cast<double>(value), 1, sought.data());
  const auto* const first = static_cast<const std::byte*>(tensor.data);
  const std::byte* const end = first + bytes * NumElements(tensor.shape);
  for (const std::byte* at = first; at < end; at += bytes) {
    if (std::memcmp(at, sought.data(), bytes) == 0) return true;
  }
  return false;
}

bool BatchRun::MayBeOfPadding(const DataError& error, size_t i) const {
  if (!error.failure.ok() && !absl::IsInvalidArgument(error.failure)) return false;
  if (requests_.size() == 1 && plan_.sizes() == target_.sizes) return false;
  // An index may be computed of the positions: padding has more of them than a table has lines.
  return !error.moved || !Holds(*requests_[i], RecipeInputs()[error.input], error.value);
}

void BatchRun::FailOffenders(FirstDataError& errors, const Frame& frame, const Scatter& scatter,
                             std::vector<Response>& responses) {
  for (size_t i = 0; i < requests_.size(); ++i) {
    FirstDataError own(*recipe_);
    const DataError* error = errors.get();
    if (requests_.size() > 1) {
      Frame alone = frame;
      alone.errors = &own;
      GatherOnly(i);
      if (const int ended = stream_.Replay(*recipe_, alone, nullptr, &control_); ended >= 0) {
        responses = Ended(ended);
        return;
      }
      error = own.get();
      // Where a launch failed no request has an answer yet, and this replay has the answer of
      // request `i`.
      if (error == nullptr && errors.failed()) scatter.Copy(frame, responses, i, i + 1);
    }
    if (error == nullptr) continue;
    if (MayBeOfPadding(*error, i)) doubtful_.push_back(i);
    responses[i].outputs.clear();
    responses[i].status = ErrorFor(*error, *requests_[i]);
  }
}

void BatchRun::RecordRequest(const RequestShape& shape) const {
  if (shape.exact || plan_.packed()) return;
  BucketLearner& learner = model_.learner();
  absl::InlinedVector<int64_t, 4> sizes;
  for (const std::string& label : learner.axes()) {
    for (size_t i = 0; i < model_.axes().size(); ++i) {
      if (model_.axes()[i].label == label) sizes.push_back(shape.sizes[i]);
    }
  }
  learner.RecordRequest(sizes, shape.rows, options_.clock->NowNs());
}

void BatchRun::Observe(int64_t busy_ns) const {
  if (plan_.shapes()[0].rehearsal || plan_.shapes()[0].audit) return;
  ModelObserver& observer = model_.owner()->observer();
  // Along the batch axis an element is a row; along another it is a position of a live row.
  std::vector<AxisElements> axes(model_.axes().size());
  BucketLearner::Replay replay = {.rows = plan_.rows(), .valid = 0, .ns = busy_ns};
  const bool was_new = model_.learner().IsNewShape(plan_.sizes());
  for (const RequestShape& shape : plan_.shapes()) {
    observer.On(RequestLengths{shape.sizes});
    RecordRequest(shape);
    replay.valid += shape.tokens;
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t rows = model_.axes()[i].is_batch ? 1 : shape.rows;
      axes[i].valid += rows * shape.sizes[i];
    }
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    if (plan_.packed()) continue;  // Nothing else is computed.
    const int64_t rows = model_.axes()[i].is_batch ? 1 : plan_.rows();
    axes[i].padded = rows * target_.sizes[i] - axes[i].valid;
    if (model_.axes()[i].is_batch) {
      replay.batch_bucket = target_.sizes[i];
      continue;
    }
    const int64_t computed = axes[i].valid + axes[i].padded;
    if (computed > 0) {
      axes[i].wasted_ns =
          static_cast<int64_t>(static_cast<double>(replay_ns_) *
                               static_cast<double>(axes[i].padded) / static_cast<double>(computed));
    }
  }
  if (!plan_.packed()) {
    replay.row_size = model_.Elements(target_.sizes, 1);
    model_.learner().RecordReplay(replay);
  }
  observer.On(
      ReplayRecord{.bucket = target_.bucket,
                   .duration_ns = replay_ns_,
                   .rows = plan_.rows(),
                   .requests = static_cast<int64_t>(requests_.size()),
                   .saved_capture = was_new && target_.sizes != plan_.sizes() &&
                                    (resolution_.decided || outcome_ == RecipeCache::Outcome::kHit),
                   .axes = axes});
}

}  // namespace reprise
