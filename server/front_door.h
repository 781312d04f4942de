// FrontDoor: the checks of each face before it lets a call in: the access gate, and for HTTP the
// rules of browsers (CORS).
//
// Threads: all methods from any, once the ports are open.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/access/access_gate.h"
#include "server/config/options.h"
#include "server/http/http_server.h"
#include "server/http/router.h"
#include "server/http2/rpc_routes.h"
#include "server/metrics/metric_table.h"
#include "server/tracing/tracer.h"

namespace reprise {

class FrontDoor {
 public:
  // Reads the key file, where there is one. `clock`, `metrics` and `tracer` (null: nothing is
  // traced) outlive the door. Errors: a key
  // file that cannot be read or has a mistake. `on_trouble` is called for later ones.
  static absl::StatusOr<std::unique_ptr<FrontDoor>> Open(const Options& options, const Clock& clock,
                                                         const ServerMetrics& metrics,
                                                         Tracer* tracer,
                                                         KeyRing::OnTrouble on_trouble);

  // Returns the gate of a gRPC port, which leaves the key that counts in the call's head.
  RpcRoutes::Gate ForRpc(bool is_admin_port) const;
  // Returns whether a call also has `right`, besides the right of its method.
  absl::Status Check(Right right, const CallHead& head, bool is_admin_port) const;

  // Lets requests of an HTTP port through to `router`, which outlives the handler, and answers the
  // others.
  HttpHandler ForHttp(const Router& router, bool is_admin_port) const;

 private:
  FrontDoor(const Options& options, std::unique_ptr<KeyRing> keys, const ServerMetrics& metrics,
            Tracer* tracer);

  absl::StatusOr<std::shared_ptr<KeyUse>> Ask(Right right, const Caller& caller) const;
  // Begin the trace of a request that was let in, where it is to have one.
  void BeginTrace(CallHead& head) const;
  void BeginTrace(const Router::Found& found, HttpExchange& exchange) const;
  // Returns the origin that an answer to `request` may be shown to; "" where to none.
  std::string AllowedOrigin(const HttpRequest& request) const;

  const std::vector<std::string> origins_;
  const AccessGate gate_;
  const ServerMetrics& metrics_;
  Tracer* const tracer_;
};

}  // namespace reprise
