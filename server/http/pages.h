// The pages that the HTTP ports show: health, metrics, versions.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "runtime/engine/engine.h"
#include "server/http/router.h"
#include "server/metrics/catalogue.h"
#include "server/repository/readiness.h"
#include "server/repository/repository.h"
#include "server/repository/server_state.h"

namespace reprise {

struct PageContext {
  Repository* repository = nullptr;
  Engine* engine = nullptr;
  Catalogue* catalogue = nullptr;
  const ServerState* state = nullptr;
  ReadinessProbe* readiness = nullptr;
  std::function<std::pair<int, int>()> grpc_and_http_ports;  // as in AdminService
  std::string version;                                       // the server's
  std::string device;
};

// /metrics. Everything in the context outlives the router.
void AddMetricsPage(const PageContext& context, Router& router);

// /v2/health/live, /v2/health/ready, /health, /ping, /version, /v2/ports and /metrics.
void AddPages(const PageContext& context, Router& router);

}  // namespace reprise
