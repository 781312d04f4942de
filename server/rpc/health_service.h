// grpc.health.v1.Health: whether the server serves, now (Check) and as it changes (Watch).
//
// Threads: all methods from any.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

#include "proto/health.pb.h"
#include "runtime/base/mutex.h"
#include "server/http2/rpc_routes.h"

namespace reprise {

class HealthService {
 public:
  using Status = grpc::health::v1::HealthCheckResponse::ServingStatus;

  // Adds the routes; the service outlives them and their calls.
  void AddTo(RpcRoutes& routes);
  // Sets the status of a service ("": of the server); services without one are unknown.
  void Set(const std::string& service, bool serving);
  // Sets the source of the status of models, whose names are services as well: nullopt where there
  // is none of the name. Once, before the first call; called without the service's mutex held by
  // others.
  void SetModels(std::function<std::optional<bool>(const std::string& name)> models) {
    models_ = std::move(models);
  }
  // Tells watchers about changes of models.
  void Refresh();
  // Ends the watches that are open: the server stops.
  void Stop();

 private:
  class Watcher;

  Status StatusOf(const std::string& service) const REQUIRES(mutex_);

  std::function<std::optional<bool>(const std::string& name)> models_;
  mutable Mutex mutex_;
  std::map<std::string, bool> serving_ GUARDED_BY(mutex_);
  std::unordered_set<std::shared_ptr<Watcher>> watchers_ GUARDED_BY(mutex_);
};

}  // namespace reprise
