// RestApi: the inference protocol over HTTP, the paths below /v2, and the requests of the V1
// protocol. Start here.
//
//   GET  /v2                                                    what the server is
//   GET  /v2/models/{model}[/versions/{version}]                inputs and outputs
//   GET  /v2/models/{model}[/versions/{version}]/ready          is it ready?
//   GET  /v2/models/{model}[/versions/{version}]/config         config.pbtxt, complete
//   GET  /v2/models[/{model}[/versions/{version}]]/stats        counts and times
//   POST /v2/models/{model}[/versions/{version}]/infer          see infer_json.h
//   POST /v1/models/{model}[/versions/{version}]:predict        see predict_json.h
//   POST /v2/models/{model}[/versions/{version}]/generate       see generate_call.h
//   POST /v2/models/{model}[/versions/{version}]/generate_stream
//   GET  /v2/models/{model}[/versions/{version}]/compilations   captures, replays, padding
//   GET, POST /v2/logging, /v2/trace/setting                    see settings_routes.h
//   /v2/systemsharedmemory/...                                  see region_routes.h
//   POST /v2/repository/index                                   every model and its state
//   POST /v2/repository/models/{model}/load, .../unload         as the control mode allows
//   POST /v2/repository[/models/{model}]/freeze, .../thaw, .../sleep, .../wake
//
// Errors are {"error": why} with the status of the error table.
#pragma once

#include <string>

#include "runtime/engine/engine.h"
#include "server/config/log_switch.h"
#include "server/generate/token_calls.h"
#include "server/http/router.h"
#include "server/metrics/catalogue.h"
#include "server/repository/repository.h"
#include "server/repository/server_state.h"
#include "server/requests/inference.h"
#include "server/shared_memory/shared_regions.h"
#include "server/tracing/tracer.h"

namespace reprise {

struct RestContext {
  Repository* repository = nullptr;
  Inference* inference = nullptr;
  const TokenCalls* tokens = nullptr;
  SharedRegions* regions = nullptr;  // null: there is no shared memory
  const ServerState* state = nullptr;
  Engine* engine = nullptr;
  Catalogue* catalogue = nullptr;
  LogSwitch* log = nullptr;
  Tracer* tracer = nullptr;         // null: nothing is traced
  MemoryBudget* parsing = nullptr;  // JSON takes its memory from it: see JsonDocument
  std::string version;              // the server's
};

// Adds the routes; all in the context outlives the router.
void AddRestApi(const RestContext& context, Router& router);

}  // namespace reprise
