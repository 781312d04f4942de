// The queue of a model version: its limits, and how a request that walked through the stages gets
// into it.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "runtime/base/clock.h"
#include "runtime/bucket/policy.h"
#include "runtime/engine/engine.h"
#include "server/repository/model_table.h"
#include "server/repository/servable.h"
#include "server/requests/call.h"
#include "server/requests/part.h"
#include "server/requests/stage.h"

namespace reprise {

struct RequestQueue {
  std::shared_ptr<RequestScheduler::Queue> waiting;
};

// Limits that hold for the queues of all models.
struct QueueLimits {
  // How long a request may have to wait for the requests in front of it; 0: no limit. Absent: a
  // second, or the time of 20 replays of the largest bucket where that is more.
  std::optional<double> max_wait_seconds = 0;
  int streams = 1;
};

// Returns the most tokens that a replay in these buckets computes: the limit on a batch, or the
// largest sizes of the fewest rows, which are let through above it.
int64_t TokensOfLargestReplay(const BucketPolicy& buckets);

// Returns how many requests for a model may wait at once: `max_queue_size` of its config, or the
// default of every queue.
int64_t MostWaiting(const ModelSettings& settings);

// Returns the queue of `servable`, whose model is loaded. Engine, scheduler and `version` outlive
// it.
std::shared_ptr<RequestQueue> OpenQueue(Engine& engine, RequestScheduler& scheduler,
                                        const ModelVersion& version, const Servable& servable,
                                        const QueueLimits& limits = {});

// Queues all parts of the request or none. The state is used up; `done` is called only if a call is
// returned, which then counts its own end as well. Errors as of Scheduler::Submit.
absl::StatusOr<std::shared_ptr<Call>> Enqueue(RequestState& state, RequestScheduler& scheduler,
                                              const Clock& clock, const Call::Done& done);

}  // namespace reprise
