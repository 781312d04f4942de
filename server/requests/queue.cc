#include "server/requests/queue.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/saturating.h"
#include "runtime/base/shown_text.h"
#include "runtime/base/status_macros.h"
#include "server/requests/plan_builder.h"

namespace reprise {
namespace {

// The default limits admit this many full batches.
constexpr int64_t kQueuedBatches = 64;
// By default a request may wait for this many, however long they take, and for this time.
constexpr int64_t kAwaitedBatches = 20;
constexpr double kAwaitedSeconds = 1;

QueueOptions<Part> QueueOptionsOf(Engine& engine, const ModelVersion& version,
                                  const std::shared_ptr<Model>& model,
                                  const ModelSettings& settings, const QueueLimits& limits) {
  QueueOptions<Part> options = {
      .name = absl::StrCat("model ", QuotedText(version.name), " version ", version.version),
      .start_batch = [&engine, model] { return std::make_unique<PlanBuilder>(engine, model); },
      .delay_ns = settings.queue_delay_us * 1000,
      .enough_rows = settings.enough_rows,
      .max_running = settings.max_running,
      .max_run_ns = settings.max_request_ms * 1'000'000,
      .on_depth = [events = version.events.get()](int64_t depth) { events->OnQueueDepth(depth); }};
  // Models of small rows take thousands in a replay, which none waits for unless told to.
  if (options.enough_rows == 0 && !settings.max_batch_size_given &&
      !settings.buckets.contains("batch")) {
    options.enough_rows = BucketPolicy::DefaultRows().back();
  }
  options.max_requests = MostWaiting(settings);
  if (settings.max_queue_bytes > 0) options.max_bytes = settings.max_queue_bytes;
  const int64_t full = TokensOfLargestReplay(*model->buckets());
  options.max_tokens = std::max(options.max_tokens, SaturatingProduct(kQueuedBatches, full));
  options.streams = limits.streams;
  const double seconds = limits.max_wait_seconds.value_or(kAwaitedSeconds);
  if (seconds > 0) {
    // A delay that is waited on purpose is no overload.
    options.max_wait_ns = static_cast<int64_t>(seconds * 1e9) + 2 * options.delay_ns;
  }
  if (!limits.max_wait_seconds.has_value()) {
    options.always_waiting_tokens = SaturatingProduct(kAwaitedBatches, full);
  }
  if (settings.max_queue_tokens > 0) {
    options.max_tokens = settings.max_queue_tokens;
    options.always_admitted = 1;  // else one that is larger by itself would never have its turn
  }
  return options;
}

}  // namespace

int64_t TokensOfLargestReplay(const BucketPolicy& buckets) {
  AxisSizes fewest_rows;
  for (const AxisBuckets& axis : buckets.axes) {
    const bool is_batch = axis.axis == buckets.batch_axis;
    fewest_rows[axis.axis] = is_batch ? axis.sizes.front() : axis.sizes.back();
  }
  return std::max(buckets.max_batch_tokens, buckets.Elements(fewest_rows));
}

int64_t MostWaiting(const ModelSettings& settings) {
  return settings.max_queue_requests > 0 ? settings.max_queue_requests
                                         : QueueOptions<Part>().max_requests;
}

std::shared_ptr<RequestQueue> OpenQueue(Engine& engine, RequestScheduler& scheduler,
                                        const ModelVersion& version, const Servable& servable,
                                        const QueueLimits& limits) {
  return std::make_shared<RequestQueue>(RequestQueue{scheduler.AddModel(
      QueueOptionsOf(engine, version, servable.model, servable.settings, limits))});
}

absl::StatusOr<std::shared_ptr<Call>> Enqueue(RequestState& state, RequestScheduler& scheduler,
                                              const Clock& clock, const Call::Done& done) {
  const std::shared_ptr<RequestQueue> queue = state.model.servable->queue;
  const int64_t deadline_ns = state.deadline_ns, end_ns = state.end_ns;
  const uint64_t priority = state.priority;
  const KeyUse* const key = state.key.get();
  const std::shared_ptr<GenerationLoop> generation = state.model.servable->generation;
  std::vector<RequestPart> pieces = std::move(state.parts);
  const auto call =
      std::make_shared<QueuedCall>(std::move(state), pieces.size(), clock, scheduler, done);
  std::vector<std::shared_ptr<Part>> parts;
  const CarriedSteps* const carrier =
      generation == nullptr ? nullptr : generation->generator().carried();
  for (RequestPart& piece : pieces) {
    auto part = std::make_shared<Part>(call, parts.size(), std::move(piece), carrier);
    part->shape = {.rows = part->measured.rows,
                   .tokens = part->measured.tokens,
                   .bytes = part->measured.bytes,
                   .deadline_ns = deadline_ns,
                   .end_ns = end_ns,
                   .priority = priority,
                   .share = key == nullptr ? 0 : key->id(),
                   .weight = key == nullptr ? 1 : key->weight()};
    parts.push_back(std::move(part));
  }
  call->SetParts({parts.begin(), parts.end()});
  RETURN_IF_ERROR(scheduler.Submit(queue->waiting, parts));
  return call;
}

}  // namespace reprise
