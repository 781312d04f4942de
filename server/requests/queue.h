// The queue of a model version: its limits, and how a request that walked through the stages gets
// into it.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/base/clock.h"
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

// The queue of `servable`, whose model is loaded. Engine, scheduler and `version` outlive it.
std::shared_ptr<RequestQueue> OpenQueue(Engine& engine, RequestScheduler& scheduler,
                                        const ModelVersion& version, const Servable& servable);

// Queues all parts of the request or none. The state is used up; `done` is called only if a call is
// returned, which then counts its own end as well. Errors: what Scheduler::Submit says.
absl::StatusOr<std::shared_ptr<Call>> Enqueue(RequestState& state, RequestScheduler& scheduler,
                                              const Clock& clock, const Call::Done& done);

}  // namespace reprise
