#include "runtime/program/runtime.h"

#include <utility>

#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/capture/capture_pool.h"

namespace reprise {

Runtime::Runtime(const RuntimeOptions& options)
    : device_({.max_isa = options.max_isa}),
      cores_(options.cores > 0 ? options.cores : AvailableCpus()) {}

absl::StatusOr<std::unique_ptr<Runtime>> Runtime::Create(const RuntimeOptions& options) {
  std::unique_ptr<Runtime> runtime;
  const auto create = [&]() -> absl::Status {
    runtime.reset(new Runtime(options));
    if (!options.recipe_store.empty()) {
      ASSIGN_OR_RETURN(runtime->store_, RecipeStore::Open({.folder = options.recipe_store}));
    }
    if (options.background) {
      runtime->captures_ = std::make_unique<CapturePool>(CapturePool::Options{});
    }
    runtime->engine_ = std::make_unique<Engine>(EngineOptions{.device = &runtime->device_,
                                                              .clock = &runtime->clock_,
                                                              .cores = &runtime->cores_,
                                                              .cache_bytes = options.cache_bytes,
                                                              .store = runtime->store_.get(),
                                                              .captures = runtime->captures_.get(),
                                                              .log = options.log},
                                                runtime->observer_);
    runtime->launcher_ = std::make_unique<Launcher>(*runtime->engine_, options.launcher);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(WithinMemory([] { return "making a runtime"; }, create));
  return runtime;
}

Runtime::~Runtime() {
  launcher_.reset();
  // Captures use the engine; waiting ones are cancelled.
  if (captures_ != nullptr) captures_->Stop();
  engine_.reset();
}

absl::StatusOr<std::shared_ptr<Model>> Runtime::Load(const std::string& path) {
  return engine_->Load({.id = {.name = path}, .path = path});
}

absl::StatusOr<std::shared_ptr<Model>> Runtime::Load(ModelOptions options) {
  return engine_->Load(std::move(options));
}

absl::StatusOr<std::shared_ptr<Model>> Runtime::LoadBytes(absl::string_view bytes,
                                                          ModelOptions options) {
  return engine_->LoadBytes(std::move(options), bytes);
}

absl::StatusOr<std::shared_ptr<Model>> Runtime::LoadGraph(Graph graph,
                                                          std::vector<Tensor> parameters,
                                                          ModelOptions options) {
  ASSIGN_OR_RETURN(ImportedModel made, ModelOfGraph(std::move(graph), std::move(parameters)));
  return engine_->Load(std::move(options), std::move(made));
}

}  // namespace reprise
