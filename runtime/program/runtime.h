// Runtime: everything that a program needs to run models in its own process.
//
//   ASSIGN_OR_RETURN(auto runtime, Runtime::Create());
//   ASSIGN_OR_RETURN(auto model, runtime->Load("model.onnx"));
//
//   // Once a request, batched with other waiting requests:
//   Future answer = runtime->Submit(model, request);
//   // One shape, again and again, in memory that stays:
//   ASSIGN_OR_RETURN(auto session, runtime->Bind(model, {{"batch", 1}, {"sequence", 128}}));
//   // Ops of the program's own:
//   OpStream ops(runtime->engine());
//
// Ownership: the runtime outlives its models' sessions, futures and streams of ops.
// Threads:   all methods from any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/graph_model.h"
#include "runtime/engine/session.h"
#include "runtime/engine/silent_observer.h"
#include "runtime/launch/launcher.h"
#include "runtime/lazy/op_stream.h"

namespace reprise {

struct RuntimeOptions {
  int cores = 0;                  // cores that replays run on; 0: all that the process may use
  Isa max_isa = kEveryIsa;        // see CpuDeviceOptions
  int64_t cache_bytes = 1 << 30;  // limit for recipes in memory
  std::string recipe_store;       // a folder that keeps recipes for the next start; empty: none
  // Recipes that requests wait for are captured on a thread of their own, and kernels are timed in
  // the background, as in the daemon. False: the first requester captures, nothing is timed.
  bool background = true;
  LauncherOptions launcher;
  std::function<void(const std::string&)> log = [](const std::string&) {};
};

class Runtime {
 public:
  // Errors: those that RecipeStore::Open returns; RESOURCE_EXHAUSTED where the system has no
  // threads.
  static absl::StatusOr<std::unique_ptr<Runtime>> Create(const RuntimeOptions& options = {});
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Loads a model from a file, from the bytes of one, or from a graph (see ModelOfGraph).
  absl::StatusOr<std::shared_ptr<Model>> Load(const std::string& path);
  absl::StatusOr<std::shared_ptr<Model>> Load(ModelOptions options);
  absl::StatusOr<std::shared_ptr<Model>> LoadBytes(absl::string_view bytes,
                                                   ModelOptions options = {});
  absl::StatusOr<std::shared_ptr<Model>> LoadGraph(Graph graph, std::vector<Tensor> parameters = {},
                                                   ModelOptions options = {});

  // See Engine::Bind, Launcher::Submit, Engine::RunOne.
  absl::StatusOr<std::unique_ptr<Session>> Bind(std::shared_ptr<const Model> model,
                                                const AxisSizes& sizes,
                                                SessionOptions options = {}) {
    return engine_->Bind(std::move(model), sizes, std::move(options));
  }
  Future Submit(std::shared_ptr<const Model> model, Request request,
                const SubmitOptions& options = {}) {
    return launcher_->Submit(std::move(model), std::move(request), options);
  }
  void Submit(std::shared_ptr<const Model> model, Request request, Launcher::Done done,
              const SubmitOptions& options = {}) {
    launcher_->Submit(std::move(model), std::move(request), std::move(done), options);
  }
  Response Run(const std::shared_ptr<const Model>& model, Request request) {
    return Submit(model, std::move(request)).Get();
  }

  Engine& engine() { return *engine_; }
  Launcher& launcher() { return *launcher_; }
  const Clock& clock() const { return clock_; }

 private:
  explicit Runtime(const RuntimeOptions& options);

  // Constructed in this order, and destroyed in the reverse one.
  const SteadyClock clock_;
  const CpuDevice device_;
  HelperPool cores_;
  SilentObserver observer_;
  std::unique_ptr<RecipeStore> store_;
  std::unique_ptr<CapturePool> captures_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Launcher> launcher_;
};

}  // namespace reprise
