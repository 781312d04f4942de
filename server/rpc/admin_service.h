// reprise.v1.Admin: recipes and counters, for people and tools.
#pragma once

#include <chrono>
#include <string>

#include "proto/admin.grpc.pb.h"
#include "runtime/engine/engine.h"
#include "server/core/repository.h"
#include "server/metrics/catalogue.h"

namespace reprise {

class AdminService final : public v1::Admin::CallbackService {
 public:
  struct Context {
    Engine* engine = nullptr;
    Repository* repository = nullptr;
    Catalogue* catalogue = nullptr;
    std::string version;  // the server's
    std::string device;   // "cpu avx512_vnni"
    int streams = 0;
    int threads_per_stream = 0;
    int64_t max_cache_bytes = 0;
    std::chrono::system_clock::time_point started;
  };
  // Everything in `context` outlives the service.
  explicit AdminService(Context context) : context_(std::move(context)) {}

  grpc::ServerUnaryReactor* ListRecipes(grpc::CallbackServerContext* call,
                                        const v1::ListRecipesRequest* request,
                                        v1::ListRecipesResponse* response) override;
  grpc::ServerUnaryReactor* DumpRecipe(grpc::CallbackServerContext* call,
                                       const v1::DumpRecipeRequest* request,
                                       v1::DumpRecipeResponse* response) override;
  grpc::ServerUnaryReactor* GetStats(grpc::CallbackServerContext* call,
                                     const v1::GetStatsRequest* request,
                                     v1::GetStatsResponse* response) override;
  grpc::ServerUnaryReactor* ExplainMisses(grpc::CallbackServerContext* call,
                                          const v1::ExplainMissesRequest* request,
                                          v1::ExplainMissesResponse* response) override;
  grpc::ServerUnaryReactor* ExplainModel(grpc::CallbackServerContext* call,
                                         const v1::ExplainModelRequest* request,
                                         v1::ExplainModelResponse* response) override;
  grpc::ServerUnaryReactor* GetDynamicity(grpc::CallbackServerContext* call,
                                          const v1::GetDynamicityRequest* request,
                                          v1::GetDynamicityResponse* response) override;
  grpc::ServerUnaryReactor* Warmup(grpc::CallbackServerContext* call,
                                   const v1::WarmupRequest* request,
                                   v1::WarmupResponse* response) override;

 private:
  const Context context_;
};

}  // namespace reprise
