// Inference: from an admitted request to its answer, whatever the transport.
//
//   auto call = inference.Start(request, [](InferResult result) { ... });
//   inference.Cancel(*call);   // when the client went away
//
// Start admits and queues, and never computes. A stream's leader thread calls Execute, which runs
// the batch and finishes its calls. A request with more rows than one replay takes is split, and
// its parts' answers are joined.
//
// Ownership: what `request` points into must live until `done` was called. Threads: all methods
// from any thread; `done` runs on the caller's thread for a refused request, otherwise on a leader
// thread or on the one that drops expired requests. It must not block.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/engine/engine.h"
#include "server/batching/scheduler.h"
#include "server/repository/repository.h"
#include "server/requests/request.h"

namespace reprise {

struct InferResult {
  absl::Status status;  // the others are valid only if OK
  Repository::Found model;
  std::vector<int> outputs;      // positions in Model::outputs(), in the order asked for
  Response response;             // of text the bytes are those of the protocol's BYTES
  std::vector<int64_t> batches;  // ids of all replays that served the request, ascending
};

class Call;  // one request in flight

class Inference {
 public:
  using Done = std::function<void(InferResult)>;

  // All of them outlive the object and its calls.
  Inference(Repository& repository, Scheduler& scheduler, Engine& engine, const Clock& clock,
            ServerEvents& events);

  // Calls `done` exactly once, whatever happens, also where there is no memory left; `done` must
  // not throw. Returns null if that has happened already.
  std::shared_ptr<Call> Start(const InferRequest& request, Done done);

  // Counts a request that a face could not decode.
  void Refuse(const InferRequest& request, const absl::Status& why) {
    CountRefused(request, why, clock_.NowNs());
  }

  // Drops what of the call still waits; what runs is finished, and `done` is called either way.
  void Cancel(Call& call);

  // The Dispatcher's function: replays the batch on `stream` and finishes each of its items once.
  void Execute(Scheduler::Batch& batch, Stream& stream);

 private:
  // Admits and queues; a call that was made counts its own end.
  absl::StatusOr<std::shared_ptr<Call>> Queue(const InferRequest& request, Done& done,
                                              int64_t start_ns);
  void CountRefused(const InferRequest& request, const absl::Status& status, int64_t start_ns);
  // Finishes the first items of the batch, as many as `finished` says then.
  void ExecuteUntilFailure(Scheduler::Batch& batch, Stream& stream, size_t& finished);

  Repository& repository_;
  Scheduler& scheduler_;
  Engine& engine_;
  const Clock& clock_;
  ServerEvents& events_;
};

}  // namespace reprise
