#include "server/rpc/inference_service.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/config/model_config.h"
#include "server/protocol/answers.h"
#include "server/protocol/load_parameters.h"
#include "server/rpc/infer_call.h"
#include "server/rpc/status.h"
#include "server/rpc/stream_call.h"

namespace reprise {
namespace {

using Reactor = grpc::ServerUnaryReactor;
using CallContext = grpc::CallbackServerContext;

Reactor* Finish(CallContext* call, const absl::Status& status) {
  Reactor* reactor = call->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

Reactor* FinishUnsupported(CallContext* call, const char* method) {
  return Finish(call, absl::UnimplementedError(absl::StrCat(method, " is not supported")));
}

// `answer` is a StatusOr of a response.
template <typename Answer, typename Response>
Reactor* FinishWith(CallContext* call, Answer answer, Response* response) {
  if (answer.ok()) *response = *std::move(answer);
  return Finish(call, answer.status());
}

}  // namespace

Reactor* InferenceService::ServerLive(CallContext* call, const inference::ServerLiveRequest*,
                                      inference::ServerLiveResponse* response) {
  response->set_live(true);
  return Finish(call, absl::OkStatus());
}

Reactor* InferenceService::ServerReady(CallContext* call, const inference::ServerReadyRequest*,
                                       inference::ServerReadyResponse* response) {
  response->set_ready(context_.readiness->Now().ready);
  return Finish(call, absl::OkStatus());
}

Reactor* InferenceService::ModelReady(CallContext* call,
                                      const inference::ModelReadyRequest* request,
                                      inference::ModelReadyResponse* response) {
  response->set_ready(!context_.state->leaves() &&
                      context_.repository->Answers(request->name(), request->version()).ok());
  return Finish(call, absl::OkStatus());
}

Reactor* InferenceService::ServerMetadata(CallContext* call,
                                          const inference::ServerMetadataRequest*,
                                          inference::ServerMetadataResponse* response) {
  *response = AnswerServerMetadata(context_.version);
  return Finish(call, absl::OkStatus());
}

Reactor* InferenceService::ModelMetadata(CallContext* call,
                                         const inference::ModelMetadataRequest* request,
                                         inference::ModelMetadataResponse* response) {
  return FinishWith(call,
                    AnswerModelMetadata(*context_.repository, request->name(), request->version()),
                    response);
}

Reactor* InferenceService::ModelInfer(CallContext* call,
                                      const inference::ModelInferRequest* request,
                                      inference::ModelInferResponse* response) {
  return StartInfer(*context_.inference, *context_.tokens, *context_.clock, open_answers_, *call,
                    *request, *response);
}

Reactor* InferenceService::ModelConfig(CallContext* call,
                                       const inference::ModelConfigRequest* request,
                                       inference::ModelConfigResponse* response) {
  return FinishWith(
      call, AnswerModelConfig(*context_.repository, request->name(), request->version()), response);
}

Reactor* InferenceService::ModelStatistics(CallContext* call,
                                           const inference::ModelStatisticsRequest* request,
                                           inference::ModelStatisticsResponse* response) {
  return FinishWith(
      call, AnswerModelStatistics(*context_.repository, request->name(), request->version()),
      response);
}

Reactor* InferenceService::RepositoryIndex(CallContext* call,
                                           const inference::RepositoryIndexRequest* request,
                                           inference::RepositoryIndexResponse* response) {
  *response = AnswerRepositoryIndex(*context_.repository, request->ready());
  return Finish(call, absl::OkStatus());
}

Reactor* InferenceService::SystemSharedMemoryStatus(
    CallContext* call, const inference::SystemSharedMemoryStatusRequest* request,
    inference::SystemSharedMemoryStatusResponse*) {
  if (request->name().empty()) return Finish(call, absl::OkStatus());
  return FinishUnsupported(call, "SystemSharedMemoryStatus of a region");
}

Reactor* InferenceService::SystemSharedMemoryUnregister(
    CallContext* call, const inference::SystemSharedMemoryUnregisterRequest* request,
    inference::SystemSharedMemoryUnregisterResponse*) {
  if (request->name().empty()) return Finish(call, absl::OkStatus());
  return FinishUnsupported(call, "SystemSharedMemoryUnregister of a region");
}

Reactor* InferenceService::CudaSharedMemoryStatus(
    CallContext* call, const inference::CudaSharedMemoryStatusRequest* request,
    inference::CudaSharedMemoryStatusResponse*) {
  if (request->name().empty()) return Finish(call, absl::OkStatus());
  return FinishUnsupported(call, "CudaSharedMemoryStatus of a region");
}

Reactor* InferenceService::CudaSharedMemoryUnregister(
    CallContext* call, const inference::CudaSharedMemoryUnregisterRequest* request,
    inference::CudaSharedMemoryUnregisterResponse*) {
  if (request->name().empty()) return Finish(call, absl::OkStatus());
  return FinishUnsupported(call, "CudaSharedMemoryUnregister of a region");
}

StreamReactor* InferenceService::ModelStreamInfer(CallContext* call) {
  return StartStream(*context_.inference, *context_.tokens, *context_.clock, open_answers_, *call);
}

Reactor* InferenceService::RepositoryModelLoad(CallContext* call,
                                               const inference::RepositoryModelLoadRequest* request,
                                               inference::RepositoryModelLoadResponse*) {
  std::optional<std::string> config;
  for (const auto& [name, value] : request->parameters()) {
    absl::Status status = CheckLoadParameter(name);
    if (status.ok()) {
      auto text = ConfigTextFromJson(value.string_param());
      status = text.status();
      if (text.ok()) config = *std::move(text);
    }
    if (!status.ok()) return Finish(call, status);
  }
  Reactor* reactor = call->DefaultReactor();
  context_.repository->Load(
      request->model_name(), std::move(config),
      [reactor](const absl::Status& status) { reactor->Finish(ToGrpc(status)); });
  return reactor;
}

Reactor* InferenceService::RepositoryModelUnload(
    CallContext* call, const inference::RepositoryModelUnloadRequest* request,
    inference::RepositoryModelUnloadResponse*) {
  Reactor* reactor = call->DefaultReactor();
  context_.repository->Unload(request->model_name(), [reactor](const absl::Status& status) {
    reactor->Finish(ToGrpc(status));
  });
  return reactor;
}

Reactor* InferenceService::SystemSharedMemoryRegister(
    CallContext* call, const inference::SystemSharedMemoryRegisterRequest*,
    inference::SystemSharedMemoryRegisterResponse*) {
  return FinishUnsupported(call, "SystemSharedMemoryRegister");
}

Reactor* InferenceService::CudaSharedMemoryRegister(
    CallContext* call, const inference::CudaSharedMemoryRegisterRequest*,
    inference::CudaSharedMemoryRegisterResponse*) {
  return FinishUnsupported(call, "CudaSharedMemoryRegister");
}

Reactor* InferenceService::TraceSetting(CallContext* call, const inference::TraceSettingRequest*,
                                        inference::TraceSettingResponse*) {
  return FinishUnsupported(call, "TraceSetting");
}

Reactor* InferenceService::LogSettings(CallContext* call, const inference::LogSettingsRequest*,
                                       inference::LogSettingsResponse*) {
  return FinishUnsupported(call, "LogSettings");
}

}  // namespace reprise
