#include "server/requests/queue.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/saturating.h"
#include "server/requests/plan_builder.h"

namespace reprise {
namespace {

// The default limits admit this many full batches.
constexpr int64_t kQueuedBatches = 64;

QueueOptions QueueOptionsOf(Engine& engine, const ModelVersion& version,
                            const std::shared_ptr<Model>& model, const ModelSettings& settings) {
  QueueOptions options = {
      .name = absl::StrCat("model \"", version.name, "\" version ", version.version),
      .start_batch = [&engine, model] { return std::make_unique<PlanBuilder>(engine, model); },
      .delay_ns = settings.queue_delay_us * 1000,
      .enough_rows = settings.enough_rows,
      .max_running = settings.max_running,
      .on_depth = [events = version.events.get()](int64_t depth) { events->OnQueueDepth(depth); }};
  // Models of small rows take thousands in a replay, which none waits for unless told to.
  if (options.enough_rows == 0 && !settings.max_batch_size_given &&
      !settings.buckets.contains("batch")) {
    options.enough_rows = BucketPolicy::DefaultRows().back();
  }
  if (settings.max_queue_requests > 0) options.max_requests = settings.max_queue_requests;
  if (settings.max_queue_bytes > 0) options.max_bytes = settings.max_queue_bytes;
  // A batch is full at max_batch_tokens, or at its largest buckets where those hold more.
  const std::shared_ptr<const BucketPolicy> buckets = model->buckets();
  AxisSizes largest;
  for (const AxisBuckets& axis : buckets->axes) largest[axis.axis] = axis.sizes.back();
  const int64_t full = std::max(settings.max_batch_tokens, buckets->Elements(largest));
  options.max_tokens = std::max(options.max_tokens, SaturatingProduct(kQueuedBatches, full));
  if (settings.max_queue_tokens > 0) {
    options.max_tokens = settings.max_queue_tokens;
    options.always_admitted = 1;  // else one that is larger by itself would never have its turn
  }
  return options;
}

}  // namespace

std::shared_ptr<ModelQueue> OpenQueue(Engine& engine, Scheduler& scheduler,
                                      const ModelVersion& version, const Servable& servable) {
  return scheduler.AddModel(QueueOptionsOf(engine, version, servable.model, servable.settings));
}

}  // namespace reprise
