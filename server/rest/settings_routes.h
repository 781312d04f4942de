// Settings of the log and of traces over HTTP, told and changed while the server serves.
//
//   GET, POST /v2/logging                          see server/protocol/log_settings.h
//   GET, POST /v2/trace/setting                    see server/protocol/trace_settings.h
//   GET, POST /v2/models/{model}/trace/setting     told; they hold for all models together
#pragma once

#include "runtime/engine/types/memory_budget.h"
#include "server/config/log_switch.h"
#include "server/http/router.h"
#include "server/repository/repository.h"
#include "server/tracing/tracer.h"

namespace reprise {

// Adds the routes; all outlive the router. `tracer`: null where nothing is traced.
void AddSettingsRoutes(LogSwitch* log, const Repository* repository, Tracer* tracer,
                       MemoryBudget* parsing, Router& router);

}  // namespace reprise
