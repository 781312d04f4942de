// inference.GRPCInferenceService: KServe v2 with Triton's extensions. Decodes, calls the core,
// encodes; nothing is computed on gRPC's threads.
//
// Threads: gRPC calls every method from its own.
#pragma once

#include <string>

#include "proto/grpc_service.grpc.pb.h"
#include "runtime/base/clock.h"
#include "server/generate/token_calls.h"
#include "server/repository/readiness.h"
#include "server/repository/repository.h"
#include "server/repository/server_state.h"
#include "server/requests/inference.h"
#include "server/transport/open_answers.h"

namespace reprise {

class InferenceService final : public inference::GRPCInferenceService::CallbackService {
 public:
  struct Context {
    Repository* repository = nullptr;
    Inference* inference = nullptr;
    const TokenCalls* tokens = nullptr;
    const ServerState* state = nullptr;
    ReadinessProbe* readiness = nullptr;
    const Clock* clock = nullptr;
    std::string version;  // the server's
  };
  // Everything in `context` outlives the service.
  explicit InferenceService(Context context) : context_(std::move(context)) {}

  OpenAnswers& open_answers() { return open_answers_; }

  using Reactor = grpc::ServerUnaryReactor;
  using CallContext = grpc::CallbackServerContext;

  Reactor* ServerLive(CallContext* call, const inference::ServerLiveRequest* request,
                      inference::ServerLiveResponse* response) override;
  Reactor* ServerReady(CallContext* call, const inference::ServerReadyRequest* request,
                       inference::ServerReadyResponse* response) override;
  Reactor* ModelReady(CallContext* call, const inference::ModelReadyRequest* request,
                      inference::ModelReadyResponse* response) override;
  Reactor* ServerMetadata(CallContext* call, const inference::ServerMetadataRequest* request,
                          inference::ServerMetadataResponse* response) override;
  Reactor* ModelMetadata(CallContext* call, const inference::ModelMetadataRequest* request,
                         inference::ModelMetadataResponse* response) override;
  Reactor* ModelInfer(CallContext* call, const inference::ModelInferRequest* request,
                      inference::ModelInferResponse* response) override;
  Reactor* ModelConfig(CallContext* call, const inference::ModelConfigRequest* request,
                       inference::ModelConfigResponse* response) override;
  Reactor* ModelStatistics(CallContext* call, const inference::ModelStatisticsRequest* request,
                           inference::ModelStatisticsResponse* response) override;
  Reactor* RepositoryIndex(CallContext* call, const inference::RepositoryIndexRequest* request,
                           inference::RepositoryIndexResponse* response) override;

  // Nothing is ever registered: status is empty, and unregistering everything is done at once.
  Reactor* SystemSharedMemoryStatus(CallContext* call,
                                    const inference::SystemSharedMemoryStatusRequest* request,
                                    inference::SystemSharedMemoryStatusResponse* response) override;
  Reactor* SystemSharedMemoryUnregister(
      CallContext* call, const inference::SystemSharedMemoryUnregisterRequest* request,
      inference::SystemSharedMemoryUnregisterResponse* response) override;
  Reactor* CudaSharedMemoryStatus(CallContext* call,
                                  const inference::CudaSharedMemoryStatusRequest* request,
                                  inference::CudaSharedMemoryStatusResponse* response) override;
  Reactor* CudaSharedMemoryUnregister(
      CallContext* call, const inference::CudaSharedMemoryUnregisterRequest* request,
      inference::CudaSharedMemoryUnregisterResponse* response) override;

  grpc::ServerBidiReactor<inference::ModelInferRequest, inference::ModelStreamInferResponse>*
  ModelStreamInfer(CallContext* call) override;
  Reactor* RepositoryModelLoad(CallContext* call,
                               const inference::RepositoryModelLoadRequest* request,
                               inference::RepositoryModelLoadResponse* response) override;
  Reactor* RepositoryModelUnload(CallContext* call,
                                 const inference::RepositoryModelUnloadRequest* request,
                                 inference::RepositoryModelUnloadResponse* response) override;
  // Shared memory is not there, and says so by name.
  Reactor* SystemSharedMemoryRegister(
      CallContext* call, const inference::SystemSharedMemoryRegisterRequest* request,
      inference::SystemSharedMemoryRegisterResponse* response) override;
  Reactor* CudaSharedMemoryRegister(CallContext* call,
                                    const inference::CudaSharedMemoryRegisterRequest* request,
                                    inference::CudaSharedMemoryRegisterResponse* response) override;
  Reactor* TraceSetting(CallContext* call, const inference::TraceSettingRequest* request,
                        inference::TraceSettingResponse* response) override;
  Reactor* LogSettings(CallContext* call, const inference::LogSettingsRequest* request,
                       inference::LogSettingsResponse* response) override;

 private:
  const Context context_;
  OpenAnswers open_answers_;
};

}  // namespace reprise
