// Launcher: requests that run while their callers go on, batched as the daemon batches.
//
//   Launcher launcher(engine);
//   Future answer = launcher.Submit(model, request);
//   launcher.Submit(model, other, [](Response response) { ... });   // from a thread of the
//   launcher Response response = answer.Get();
//
// Requests wait in a queue of their model. A free stream takes the waiting ones at once, and forms
// a batch of requests that may share a replay and are worth it; models take turns. With capture
// threads (EngineOptions::captures) no request waits for the capture of another bucket.
//
// Ownership: borrows the engine, which outlives it. The bytes of a request's inputs belong to the
//            caller, and stay until its answer is there; models are kept by the requests that wait.
// Threads:   all methods from any. A callback runs on a thread of the launcher, which serves no
//            request meanwhile: be quick, and never wait in it for another answer of the launcher.
// Errors:    in the answer: those of Model::Measure and Engine::Run; RESOURCE_EXHAUSTED for a full
//            queue, DEADLINE_EXCEEDED, CANCELLED; UNAVAILABLE once the launcher goes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/engine/engine.h"
#include "runtime/launch/future.h"
#include "runtime/launch/launch_item.h"

namespace reprise {

struct LauncherOptions {
  int streams = 0;          // replays at the same time; 0: as many as the engine has cores
  int max_threads = 0;      // limit for one replay; 0: all cores, where they are idle
  bool batches = true;      // false: every request has a replay of its own
  int64_t delay_ns = 0;     // how long an idle stream waits for more rows
  int64_t enough_rows = 0;  // a batch with this many rows does not wait; 0: a full one
  int64_t max_waiting = 0;  // requests in the queue of one model; 0: 16384
};

struct SubmitOptions {
  std::chrono::nanoseconds timeout{0};  // it must begin within this; 0: any time
  uint64_t priority = 0;                // lower goes first
  OnMiss on_miss = OnMiss::kDefault;    // fallback where no recipe is ready
  std::string id;                       // names it in reports
};

class Launcher {
 public:
  using Done = std::function<void(Response)>;

  // Throws std::system_error where the system has no threads for the streams.
  explicit Launcher(Engine& engine, const LauncherOptions& options = {});
  // Waits for the answers of all submitted requests.
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  Future Submit(std::shared_ptr<const Model> model, Request request,
                const SubmitOptions& options = {});
  // `done` is called once; where the request is refused, on this thread.
  void Submit(std::shared_ptr<const Model> model, Request request, Done done,
              const SubmitOptions& options = {});

  // Waits until nothing waits and nothing runs; false if `timeout` came first.
  bool WaitUntilIdle(std::chrono::nanoseconds timeout);
  // Returns the requests that wait or run.
  LaunchScheduler::Load load() const { return scheduler_.GetLoad(); }

 private:
  using Queue = LaunchScheduler::Queue;
  struct Waiting {
    std::weak_ptr<const Model> model;
    std::shared_ptr<Queue> queue;
  };
  std::shared_ptr<Queue> QueueOf(const std::shared_ptr<const Model>& model);
  // Returns the items of the request; empty where `done` was called already.
  std::vector<std::shared_ptr<LaunchItem>> Start(std::shared_ptr<const Model> model,
                                                 Request request, Done done,
                                                 const SubmitOptions& options);

  Engine& engine_;
  const LauncherOptions options_;
  const Clock& clock_;
  LaunchScheduler scheduler_;
  std::vector<std::unique_ptr<Stream>> streams_;
  Mutex mutex_;
  std::map<const Model*, Waiting> queues_ GUARDED_BY(mutex_);
  std::unique_ptr<LaunchDispatcher> dispatcher_;  // last: its threads use the others
};

}  // namespace reprise
