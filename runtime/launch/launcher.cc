#include "runtime/launch/launcher.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/saturating.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

// The default limits admit this many full batches.
constexpr int64_t kQueuedBatches = 64;
// Destruction waits for answers without a limit, in steps of this.
constexpr std::chrono::seconds kLook{1};

int CoresOf(const Engine& engine) {
  return engine.options().cores == nullptr ? 1 : engine.options().cores->cores();
}

}  // namespace

Launcher::Launcher(Engine& engine, const LauncherOptions& options)
    : engine_(engine), options_(options), clock_(*engine.options().clock), scheduler_(clock_) {
  const int streams = options.streams > 0 ? options.streams : CoresOf(engine);
  for (int i = 0; i < streams; ++i) {
    absl::StatusOr<std::unique_ptr<Stream>> stream = Stream::Create(
        {.cores = engine.options().cores,
         .max_threads = options.max_threads > 0 ? options.max_threads : CoresOf(engine)});
    if (!stream.ok()) throw std::bad_alloc();
    streams_.push_back(*std::move(stream));
  }
  dispatcher_ = std::make_unique<LaunchDispatcher>(
      scheduler_, streams, [this](int stream, LaunchScheduler::Batch& batch) {
        ExecuteLaunches(batch, engine_, *streams_[static_cast<size_t>(stream)]);
      });
}

Launcher::~Launcher() {
  const absl::Status why = absl::UnavailableError("the launcher has ended");
  scheduler_.StopAccepting(why);
  while (!scheduler_.WaitUntilIdle(kLook)) {
  }
  scheduler_.Shutdown(why);
  dispatcher_.reset();
}

bool Launcher::WaitUntilIdle(std::chrono::nanoseconds timeout) {
  return scheduler_.WaitUntilIdle(timeout);
}

std::shared_ptr<Launcher::Queue> Launcher::QueueOf(const std::shared_ptr<const Model>& model) {
  MutexLock lock(mutex_);
  std::erase_if(queues_, [](const auto& entry) { return entry.second.model.expired(); });
  Waiting& known = queues_[model.get()];
  if (known.queue != nullptr) return known.queue;
  QueueOptions<LaunchItem> options = {.name = absl::StrCat("model '", model->id().name, "'"),
                                      .streams = static_cast<int64_t>(streams_.size()),
                                      // Items keep the model, and there is no batch without items.
                                      .start_batch =
                                          [this, bare = model.get()] {
                                            return std::make_unique<LaunchPlan>(engine_, *bare,
                                                                                options_.batches);
                                          },
                                      .delay_ns = options_.delay_ns,
                                      .enough_rows = options_.batches ? options_.enough_rows : 1};
  if (options_.max_waiting > 0) options.max_requests = options_.max_waiting;
  AxisSizes largest;
  const std::shared_ptr<const BucketPolicy> buckets = model->buckets();
  for (const AxisBuckets& axis : buckets->axes) largest[axis.axis] = axis.sizes.back();
  const int64_t full = std::max(model->options().max_batch_tokens, buckets->Elements(largest));
  options.max_tokens = std::max(options.max_tokens, SaturatingProduct(kQueuedBatches, full));
  known = {.model = model, .queue = scheduler_.AddModel(std::move(options))};
  return known.queue;
}

std::vector<std::shared_ptr<LaunchItem>> Launcher::Start(std::shared_ptr<const Model> model,
                                                         Request request, Done done,
                                                         const SubmitOptions& options) {
  std::vector<std::shared_ptr<LaunchItem>> items;
  const absl::Status started = WithinMemory(
      [&] { return absl::StrCat("a request for model '", model->id().name, "'"); },
      [&]() -> absl::Status {
        model->SpreadRows(request);
        ASSIGN_OR_RETURN(RequestShape shape, model->Measure(request));
        shape.on_miss = options.on_miss;
        shape.id = options.id;
        const int64_t max_rows = model->MaxRows(shape);
        std::vector<RequestPart> parts;
        if (shape.rows <= max_rows) {
          RETURN_IF_ERROR(model->Admits(shape));
          parts.push_back({.request = std::move(request), .shape = std::move(shape)});
        } else {
          parts = SplitRows(*model, request, shape, max_rows);
        }
        const auto call = std::make_shared<LaunchCall>(model, parts.size(), done);
        const int64_t deadline =
            options.timeout.count() > 0 ? clock_.NowNs() + options.timeout.count() : kNoDeadline;
        std::vector<std::shared_ptr<LaunchItem>> made;
        for (RequestPart& part : parts) {
          auto item = std::make_shared<LaunchItem>(call, made.size(), std::move(part));
          item->shape = {.rows = item->measured.rows,
                         .tokens = item->measured.tokens,
                         .bytes = item->measured.bytes,
                         .deadline_ns = deadline,
                         .priority = options.priority};
          made.push_back(std::move(item));
        }
        RETURN_IF_ERROR(scheduler_.Submit(QueueOf(model), made));
        items = std::move(made);
        return absl::OkStatus();
      });
  if (!started.ok()) done({.status = started});
  return items;
}

void Launcher::Submit(std::shared_ptr<const Model> model, Request request, Done done,
                      const SubmitOptions& options) {
  Start(std::move(model), std::move(request), std::move(done), options);
}

Future Launcher::Submit(std::shared_ptr<const Model> model, Request request,
                        const SubmitOptions& options) {
  Future future;
  const std::shared_ptr<Future::State> state = future.state_;
  std::vector<std::shared_ptr<LaunchItem>> items = Start(
      std::move(model), std::move(request),
      [state](Response response) { Future::Set(*state, std::move(response)); }, options);
  if (items.empty()) return future;
  MutexLock lock(state->mutex);
  if (state->there) return future;
  // Items that have run are in no queue: nothing happens to them.
  state->cancel = [this, items = std::move(items)] {
    for (const auto& item : items) scheduler_.Cancel(item);
  };
  return future;
}

}  // namespace reprise
