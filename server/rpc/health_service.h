// grpc.health.v1.Health: whether the server serves, now (Check) and as it changes (Watch).
//
// Threads: all methods from any.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_set>

#include "proto/health.pb.h"
#include "runtime/base/mutex.h"
#include "server/http2/rpc_routes.h"

namespace reprise {

class HealthService {
 public:
  using Status = grpc::health::v1::HealthCheckResponse::ServingStatus;

  // The service outlives the routes and their calls.
  void AddTo(RpcRoutes& routes);
  // The status of a service ("": of the server); those that nobody set are unknown.
  void Set(const std::string& service, bool serving);
  // Ends the watches that are open: the server stops.
  void Stop();

 private:
  class Watcher;

  Status StatusOf(const std::string& service) const REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, bool> serving_ GUARDED_BY(mutex_);
  std::unordered_set<std::shared_ptr<Watcher>> watchers_ GUARDED_BY(mutex_);
};

}  // namespace reprise
