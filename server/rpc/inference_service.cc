#include "server/rpc/inference_service.h"

#include <google/protobuf/empty.pb.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/grpc_service.pb.h"
#include "runtime/base/status_macros.h"
#include "server/config/model_config.h"
#include "server/http2/unary_method.h"
#include "server/protocol/answers.h"
#include "server/protocol/load_parameters.h"
#include "server/protocol/log_settings.h"
#include "server/rpc/infer_call.h"
#include "server/rpc/stream_call.h"

namespace reprise {
namespace {

constexpr char kService[] = "/inference.GRPCInferenceService/";

absl::Status Unsupported(absl::string_view method) {
  return absl::UnimplementedError(absl::StrCat(method, " is not supported"));
}

// `answer` is a StatusOr of a response.
template <typename Answer, typename Response>
absl::Status AnswerWith(Answer answer, Response& response) {
  if (answer.ok()) response = *std::move(answer);
  return answer.status();
}

// Nothing is ever registered: the status of all regions is empty, and forgetting all is done at
// once.
template <typename Request, typename Response>
void AddWithoutRegions(RpcRoutes& routes, const char* method) {
  AddMethod<Request, Response>(
      routes, absl::StrCat(kService, method), [method](const auto& request, auto&) {
        return request.name().empty() ? absl::OkStatus()
                                      : Unsupported(absl::StrCat(method, " of a region"));
      });
}

// The config that a request to load has in its parameters; nullopt: that of the file counts.
absl::StatusOr<std::optional<std::string>> LoadConfig(
    const inference::RepositoryModelLoadRequest& request) {
  std::optional<std::string> config;
  for (const auto& [name, value] : request.parameters()) {
    RETURN_IF_ERROR(CheckLoadParameter(name));
    ASSIGN_OR_RETURN(config, ConfigTextFromJson(value.string_param()));
  }
  return config;
}

}  // namespace

void InferenceService::AddTo(RpcRoutes& routes) {
  AddModelMethods(routes);
  AddRepositoryMethods(routes);
  AddSettings(routes);
  AddUnsupported(routes);
}

void InferenceService::AddModelMethods(RpcRoutes& routes) {
  using namespace inference;
  const Context& context = context_;
  const auto path = [](const char* method) { return absl::StrCat(kService, method); };
  routes.Add(path("ModelInfer"),
             InferMethod(*context.inference, *context.tokens, *context.clock, open_answers_));
  routes.Add(path("ModelStreamInfer"),
             StreamInferMethod(*context.inference, *context.tokens, *context.clock, open_answers_));
  AddMethod<ServerLiveRequest, ServerLiveResponse>(routes, path("ServerLive"),
                                                   [](const auto&, auto& response) {
                                                     response.set_live(true);
                                                     return absl::OkStatus();
                                                   });
  AddMethod<ServerReadyRequest, ServerReadyResponse>(
      routes, path("ServerReady"), [&context](const auto&, auto& response) {
        response.set_ready(context.readiness->Now().ready);
        return absl::OkStatus();
      });
  AddMethod<ModelReadyRequest, ModelReadyResponse>(
      routes, path("ModelReady"), [&context](const auto& request, auto& response) {
        response.set_ready(!context.state->leaves() &&
                           context.repository->Answers(request.name(), request.version()).ok());
        return absl::OkStatus();
      });
  AddMethod<ServerMetadataRequest, ServerMetadataResponse>(
      routes, path("ServerMetadata"), [&context](const auto&, auto& response) {
        response = AnswerServerMetadata(context.version);
        return absl::OkStatus();
      });
  AddMethod<ModelMetadataRequest, ModelMetadataResponse>(
      routes, path("ModelMetadata"), [&context](const auto& request, auto& response) {
        return AnswerWith(
            AnswerModelMetadata(*context.repository, request.name(), request.version()), response);
      });
  AddMethod<ModelConfigRequest, ModelConfigResponse>(
      routes, path("ModelConfig"), [&context](const auto& request, auto& response) {
        return AnswerWith(AnswerModelConfig(*context.repository, request.name(), request.version()),
                          response);
      });
  AddMethod<ModelStatisticsRequest, ModelStatisticsResponse>(
      routes, path("ModelStatistics"), [&context](const auto& request, auto& response) {
        return AnswerWith(
            AnswerModelStatistics(*context.repository, request.name(), request.version()),
            response);
      });
}

void InferenceService::AddRepositoryMethods(RpcRoutes& routes) {
  using namespace inference;
  const Context& context = context_;
  AddMethod<RepositoryIndexRequest, RepositoryIndexResponse>(
      routes, absl::StrCat(kService, "RepositoryIndex"),
      [&context](const auto& request, auto& response) {
        response = AnswerRepositoryIndex(*context.repository, request.ready());
        return absl::OkStatus();
      });
  AddLateMethod<RepositoryModelLoadRequest, RepositoryModelLoadResponse>(
      routes, absl::StrCat(kService, "RepositoryModelLoad"), [&context](const auto& call) {
        auto config = LoadConfig(call->request());
        if (!config.ok()) return call->Finish(config.status());
        context.repository->Load(call->request().model_name(), *std::move(config),
                                 [call](const absl::Status& status) { call->Finish(status); });
      });
  AddLateMethod<RepositoryModelUnloadRequest, RepositoryModelUnloadResponse>(
      routes, absl::StrCat(kService, "RepositoryModelUnload"), [&context](const auto& call) {
        context.repository->Unload(call->request().model_name(),
                                   [call](const absl::Status& status) { call->Finish(status); });
      });
}

void InferenceService::AddSettings(RpcRoutes& routes) {
  AddMethod<inference::LogSettingsRequest, inference::LogSettingsResponse>(
      routes, absl::StrCat(kService, "LogSettings"),
      [log = context_.log](const auto& request, auto& response) {
        return AnswerWith(AnswerLogSettings(request, *log), response);
      });
}

void InferenceService::AddUnsupported(RpcRoutes& routes) {
  using namespace inference;
  AddWithoutRegions<SystemSharedMemoryStatusRequest, SystemSharedMemoryStatusResponse>(
      routes, "SystemSharedMemoryStatus");
  AddWithoutRegions<SystemSharedMemoryUnregisterRequest, SystemSharedMemoryUnregisterResponse>(
      routes, "SystemSharedMemoryUnregister");
  AddWithoutRegions<CudaSharedMemoryStatusRequest, CudaSharedMemoryStatusResponse>(
      routes, "CudaSharedMemoryStatus");
  AddWithoutRegions<CudaSharedMemoryUnregisterRequest, CudaSharedMemoryUnregisterResponse>(
      routes, "CudaSharedMemoryUnregister");
  for (const char* method :
       {"SystemSharedMemoryRegister", "CudaSharedMemoryRegister", "TraceSetting"}) {
    // Whatever the request says.
    AddMethod<google::protobuf::Empty, google::protobuf::Empty>(
        routes, absl::StrCat(kService, method),
        [method](const auto&, auto&) { return Unsupported(method); });
  }
}

}  // namespace reprise
