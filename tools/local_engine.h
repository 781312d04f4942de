// LocalEngine: an engine in the process of a command, for the commands that look at a model file.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/base/clock.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/silent_observer.h"

namespace reprise::cli {

struct LocalEngine {
  // `metrics_file`: written when the engine ends, see EngineOptions; empty: none.
  explicit LocalEngine(Isa max_isa, int threads = 1, const std::string& metrics_file = "")
      : device(max_isa),
        cores(threads),
        engine({.device = &device, .clock = &clock, .cores = &cores, .metrics_file = metrics_file},
               observer) {}

  // Loads as Engine::Load does; inputs without a declared rank have the first usual one that the
  // model takes. `options.ranks` says other ranks for them.
  absl::StatusOr<std::shared_ptr<Model>> Load(ModelOptions options);
  // Loads the model at `path`, packed where it can be. Nothing is answered, so that the
  // certificates are measured at small sizes alone.
  absl::StatusOr<std::shared_ptr<Model>> LoadToStudy(const std::string& path, Precision precision);

  SteadyClock clock;
  CpuDevice device;
  HelperPool cores;
  SilentObserver observer;
  Engine engine;
};

}  // namespace reprise::cli
