#include "server/rpc/rpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/cgroup.h"

namespace reprise {

std::string HostAndPort(const std::string& address, int port) {
  if (absl::StrContains(address, ':')) return absl::StrCat("[", address, "]:", port);
  return absl::StrCat(address, ":", port);
}

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(const Endpoint& endpoint,
                                                            InferenceService::Context inference,
                                                            AdminService::Context admin) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  std::unique_ptr<RpcServer> server(new RpcServer(std::move(inference), std::move(admin)));
  const std::string address = HostAndPort(endpoint.address, endpoint.port);
  grpc::ServerBuilder builder;
  // Two daemons on one port would share it silently.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Requests that wait are bounded by the queues' limits; a large one is refused there, with the
  // numbers. But it has been read by then: requests of more than a quarter of the memory are
  // refused unread, and of half of it gRPC stops reading, and closes connections rather than take
  // more.
  const int64_t memory = AvailableMemoryBytes();
  builder.SetMaxReceiveMessageSize(
      static_cast<int>(std::min<int64_t>(memory / 4, std::numeric_limits<int32_t>::max())));
  builder.SetResourceQuota(grpc::ResourceQuota("reprised").Resize(static_cast<size_t>(memory / 2)));
  builder.SetMaxSendMessageSize(std::numeric_limits<int32_t>::max());
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &server->port_);
  builder.RegisterService(&server->inference_);
  builder.RegisterService(&server->admin_);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr || server->port_ <= 0) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", address, " for gRPC"));
  }
  server->SetServing(false);
  return server;
}

RpcServer::~RpcServer() {
  if (server_ != nullptr) Shutdown(std::chrono::system_clock::now());
}

void RpcServer::SetServing(bool serving) {
  grpc::HealthCheckServiceInterface* health = server_->GetHealthCheckService();
  health->SetServingStatus("", serving);
  health->SetServingStatus("inference.GRPCInferenceService", serving);
}

void RpcServer::Shutdown(std::chrono::system_clock::time_point deadline) {
  server_->Shutdown(deadline);
  server_->Wait();
}

}  // namespace reprise
