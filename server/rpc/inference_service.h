// inference.GRPCInferenceService: KServe v2 with Triton's extensions. Decodes, calls the core,
// encodes; nothing is computed on the server's threads.
#pragma once

#include <string>
#include <utility>

#include "runtime/base/clock.h"
#include "server/config/log_switch.h"
#include "server/generate/token_calls.h"
#include "server/http2/rpc_routes.h"
#include "server/repository/readiness.h"
#include "server/repository/repository.h"
#include "server/repository/server_state.h"
#include "server/requests/inference.h"
#include "server/shared_memory/shared_regions.h"
#include "server/tracing/tracer.h"
#include "server/transport/open_answers.h"

namespace reprise {

class InferenceService {
 public:
  struct Context {
    Repository* repository = nullptr;
    Inference* inference = nullptr;
    const TokenCalls* tokens = nullptr;
    SharedRegions* regions = nullptr;  // null: there is no shared memory
    const ServerState* state = nullptr;
    ReadinessProbe* readiness = nullptr;
    const Clock* clock = nullptr;
    LogSwitch* log = nullptr;
    Tracer* tracer = nullptr;  // null: nothing is traced
    std::string version;       // the server's
  };
  // Everything in `context` outlives the service.
  explicit InferenceService(Context context) : context_(std::move(context)) {}

  // Adds the routes, which the service outlives.
  void AddTo(RpcRoutes& routes);
  OpenAnswers& open_answers() { return open_answers_; }

 private:
  void AddModelMethods(RpcRoutes& routes);
  void AddRepositoryMethods(RpcRoutes& routes);
  void AddSettings(RpcRoutes& routes);
  void AddRegionMethods(RpcRoutes& routes);

  const Context context_;
  OpenAnswers open_answers_;
};

}  // namespace reprise
