// Inference: from a request to its answer, whatever the transport.
//
//   Inference inference(RequestStages(repository), repository, ...);
//   auto call = inference.Start(request, [](InferResult result) { ... });
//   inference.Cancel(*call);   // when the client went away
//
// Start takes the request through its stages and queues it, and never computes. A stream's leader
// thread calls Execute, which runs the batch and finishes its calls. A request with more rows than
// one replay takes is split, and its parts' answers are joined.
//
// Ownership: `done` owns the memory that `request` points into, which must live until `done` is
// destroyed: a request that is answered early may still be read by a replay that others wait for.
// Threads: all methods from any thread; `done` runs on the caller's thread for a refused request,
// otherwise on a leader thread, on the one that drops expired requests, or on the one that cancels.
// It must not block.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/engine/engine.h"
#include "server/repository/repository.h"
#include "server/requests/call.h"
#include "server/requests/part.h"
#include "server/requests/plan_builder.h"
#include "server/requests/request.h"
#include "server/requests/result.h"
#include "server/requests/stage.h"
#include "server/shared_memory/shared_regions.h"

namespace reprise {

class Inference {
 public:
  using Done = Call::Done;

  // `stages`: see RequestStages. All others outlive the object and its calls; without `regions`
  // tensors in shared memory are refused.
  Inference(std::vector<Stage> stages, Repository& repository, RequestScheduler& scheduler,
            Engine& engine, const Clock& clock, ServerEvents& events,
            const SharedRegions* regions = nullptr);

  // Calls `done` exactly once, whatever happens, also where there is no memory left; `done` must
  // not throw. Returns null if that has happened already.
  std::shared_ptr<Call> Start(const InferRequest& request, Done done);

  // Counts a request that a face could not decode.
  void Refuse(const InferRequest& request, const absl::Status& why) {
    CountRefused(request, why, clock_.NowNs());
  }

  // Drops the parts of the call, whether they wait or run, so that `done` is called at once. A
  // replay that others wait for goes on; one without waiters ends.
  void Cancel(Call& call);

  // Replays the batch on `stream`, and finishes each of its items once: the Dispatcher's function.
  void Execute(RequestScheduler::Batch& batch, Stream& stream);

 private:
  class Anew;

  // Start, of a request that came at `start_ns`.
  std::shared_ptr<Call> StartAt(const InferRequest& request, Done done, int64_t start_ns);
  // Through the stages into the queue; a call that was made counts its own end.
  absl::StatusOr<std::shared_ptr<Call>> Walk(const InferRequest& request, Done& done,
                                             int64_t start_ns);
  // Walks the stages from the first one on; a request of a model that keeps state waits for its
  // turn. Null: the request waits, and is begun again.
  absl::StatusOr<std::shared_ptr<Call>> WalkFrom(const InferRequest& request, RequestState state,
                                                 const Done& done);
  // Walks the stages from number `next` on, and into the queue.
  absl::StatusOr<std::shared_ptr<Call>> WalkOn(const InferRequest& request, RequestState& state,
                                               size_t next, const Done& done);
  // Waits for the request's turn in its sequence before it walks on.
  absl::StatusOr<std::shared_ptr<Call>> EnterSequence(const InferRequest& request,
                                                      RequestState state, size_t next,
                                                      const Done& done);
  void CountRefused(const InferRequest& request, const absl::Status& status, int64_t start_ns);

  const std::vector<Stage> stages_;
  Repository& repository_;
  RequestScheduler& scheduler_;
  Engine& engine_;
  const Clock& clock_;
  ServerEvents& events_;
  const SharedRegions* const regions_;
};

}  // namespace reprise
