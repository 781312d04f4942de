// reprise.v1.Admin: recipes and counters, for people and tools.
#pragma once

#include <chrono>
#include <string>

#include "proto/admin.pb.h"
#include "runtime/engine/engine.h"
#include "server/http2/rpc_routes.h"
#include "server/metrics/catalogue.h"
#include "server/repository/repository.h"

namespace reprise {

class AdminService {
 public:
  struct Context {
    Engine* engine = nullptr;
    Repository* repository = nullptr;
    Catalogue* catalogue = nullptr;
    // Returns whether a call may do things that take the right admin; null: each may.
    std::function<absl::Status(const CallHead& head)> may_administer;
    std::string version;  // the server's
    std::string device;   // "cpu avx512_vnni"
    int streams = 0;
    int threads_per_stream = 0;
    int64_t max_cache_bytes = 0;
    std::chrono::system_clock::time_point started;
    // Ports that are open by now, 0 for others; null: none is told.
    std::function<std::pair<int, int>()> grpc_and_http_ports;
  };
  // Everything in `context` outlives the service.
  explicit AdminService(Context context) : context_(std::move(context)) {}

  // Adds the routes, which the service outlives.
  void AddTo(RpcRoutes& routes);

 private:
  template <typename Request, typename Response>
  void Add(RpcRoutes& routes, const char* method,
           absl::Status (AdminService::*body)(const Request&, Response&));

  absl::Status ListRecipes(const v1::ListRecipesRequest& request,
                           v1::ListRecipesResponse& response);
  absl::Status DumpRecipe(const v1::DumpRecipeRequest& request, v1::DumpRecipeResponse& response);
  absl::Status GetStats(const v1::GetStatsRequest& request, v1::GetStatsResponse& response);
  absl::Status GetPorts(const v1::GetPortsRequest& request, v1::GetPortsResponse& response);
  absl::Status GetRecompilations(const v1::GetRecompilationsRequest& request,
                                 v1::GetRecompilationsResponse& response);
  absl::Status ExplainMisses(const v1::ExplainMissesRequest& request,
                             v1::ExplainMissesResponse& response);
  absl::Status ExplainModel(const v1::ExplainModelRequest& request,
                            v1::ExplainModelResponse& response);
  absl::Status GetDynamicity(const v1::GetDynamicityRequest& request,
                             v1::GetDynamicityResponse& response);
  absl::Status ChangeModel(const v1::ChangeModelRequest& request,
                           v1::ChangeModelResponse& response);
  absl::Status Warmup(const v1::WarmupRequest& request, v1::WarmupResponse& response);

  const Context context_;
};

}  // namespace reprise
