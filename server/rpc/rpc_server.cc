#include "server/rpc/rpc_server.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/rpc/reflection_service.h"

namespace reprise {
namespace {

constexpr char kInference[] = "inference.GRPCInferenceService";

}  // namespace

std::string HostAndPort(const std::string& address, int port) {
  if (absl::StrContains(address, ':')) return absl::StrCat("[", address, "]:", port);
  return absl::StrCat(address, ":", port);
}

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(
    Http2ServerOptions options, const ByteAccount& account, InferenceService::Context inference,
    AdminService::Context admin, LoadReportService::Source load, RpcRoutes::Gate gate) {
  const auto models = [repository = inference.repository,
                       state = inference.state](const std::string& name) -> std::optional<bool> {
    if (name.empty() || repository->FindListed(name, "") == nullptr) return std::nullopt;
    return !state->leaves() && repository->Answers(name, "").ok();
  };
  const bool has_load = load != nullptr;
  std::unique_ptr<RpcServer> server(
      new RpcServer(std::move(inference), std::move(admin), std::move(load)));
  RpcRoutes& routes = server->routes_;
  server->inference_.AddTo(routes);
  server->admin_.AddTo(routes);
  server->health_.SetModels(models);
  server->health_.AddTo(routes);
  std::vector<std::string> services = {kInference, "reprise.v1.Admin", "grpc.health.v1.Health"};
  if (has_load) {
    server->load_.AddTo(routes);
    services.push_back("xds.service.orca.v3.OpenRcaService");
  }
  AddReflection(std::move(services), routes);
  routes.SetGate(std::move(gate));
  server->SetServing(false);
  ASSIGN_OR_RETURN(server->server_, Http2Server::Start(std::move(options), routes, account));
  return server;
}

void RpcServer::SetServing(bool serving) {
  health_.Set("", serving);
  health_.Set(kInference, serving);
}

}  // namespace reprise
