// RpcServer: the gRPC port with all its services: inference, admin, health, load
// reports and reflection.
//
// Threads: construction and Shutdown from one thread; SetServing from any.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/http2/http2_server.h"
#include "server/http2/rpc_routes.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/health_service.h"
#include "server/rpc/inference_service.h"
#include "server/rpc/load_report_service.h"

namespace reprise {

class RpcServer {
 public:
  // Binds and serves. Health is not serving until SetServing. `account` outlives the server.
  // `load`: null where clients may not ask for load reports.
  // Errors: UNAVAILABLE naming the address that could not be bound.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(
      Http2ServerOptions options, const ByteAccount& account, InferenceService::Context inference,
      AdminService::Context admin, LoadReportService::Source load, RpcRoutes::Gate gate);

  // Returns the port that is bound, also when 0 was asked for.
  int port() const { return server_->port(); }
  int connections() const { return server_->connections(); }
  // Sets the answer of grpc.health.v1, for "" and for the inference service.
  void SetServing(bool serving);
  // Tells watchers of a model's health that models have changed.
  void RefreshHealth() { health_.Refresh(); }
  // Returns whether every answer to an inference is sent, and none was and no call was refused for
  // `quiet`, or `timeout` is over; false when one is still open then.
  bool WaitUntilSent(std::chrono::nanoseconds quiet, std::chrono::nanoseconds timeout) {
    return inference_.open_answers().WaitUntilQuiet(quiet, timeout);
  }
  // Sends clients elsewhere, and serves requests that they still send; see Http2Server. Ends
  // watches of health and of the load.
  bool Leave(std::chrono::steady_clock::time_point deadline) {
    health_.Stop();
    load_.Stop();
    return server_->Leave(deadline);
  }
  // Takes no new calls; those under way may take until `deadline`, then they are cancelled.
  void Shutdown(std::chrono::steady_clock::time_point deadline) {
    health_.Stop();
    load_.Stop();
    server_->Shutdown(deadline);
  }

 private:
  RpcServer(InferenceService::Context inference, AdminService::Context admin,
            LoadReportService::Source load)
      : inference_(std::move(inference)), admin_(std::move(admin)), load_(std::move(load)) {}

  InferenceService inference_;
  AdminService admin_;
  HealthService health_;
  LoadReportService load_;
  RpcRoutes routes_;
  std::unique_ptr<Http2Server> server_;
};

// "127.0.0.1:8001", "[::1]:8001".
std::string HostAndPort(const std::string& address, int port);

}  // namespace reprise
