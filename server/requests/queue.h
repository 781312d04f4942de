// The queue of a model version: its limits, and which of its requests share a replay.
#pragma once

#include <memory>

#include "runtime/engine/engine.h"
#include "server/batching/scheduler.h"
#include "server/repository/model_table.h"
#include "server/repository/servable.h"

namespace reprise {

// The queue of `servable`, whose model is loaded. The engine, the scheduler and `version` outlive it.
std::shared_ptr<ModelQueue> OpenQueue(Engine& engine, Scheduler& scheduler,
                                      const ModelVersion& version, const Servable& servable);

}  // namespace reprise
