#include "server/rpc/inference_service.h"

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
#include "server/protocol/region_answers.h"
#include "server/protocol/trace_settings.h"
#include "server/rpc/infer_call.h"
#include "server/rpc/stream_call.h"

namespace reprise {
namespace {

constexpr char kService[] = "/inference.GRPCInferenceService/";

// `answer` is a StatusOr of a response.
template <typename Answer, typename Response>
absl::Status AnswerWith(Answer answer, Response& response) {
  if (answer.ok()) response = *std::move(answer);
  return answer.status();
}

// Returns the config that a request to load has in its parameters; nullopt: the file's counts.
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
  AddRegionMethods(routes);
  for (const char* probe : {"ServerLive", "ServerReady"}) {
    routes.MarkProbe(absl::StrCat(kService, probe));
  }
}

void InferenceService::AddModelMethods(RpcRoutes& routes) {
  using namespace inference;
  const Context& context = context_;
  const auto path = [](const char* method) { return absl::StrCat(kService, method); };
  routes.Add(path("ModelInfer"),
             InferMethod(*context.inference, *context.tokens, *context.clock, open_answers_));
  routes.Add(path("ModelStreamInfer"),
             StreamInferMethod(*context.inference, *context.tokens, *context.clock, open_answers_));
  for (const char* method : {"ModelInfer", "ModelStreamInfer"}) routes.MarkTellsLog(path(method));
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
  AddMethod<inference::TraceSettingRequest, inference::TraceSettingResponse>(
      routes, absl::StrCat(kService, "TraceSetting"),
      [repository = context_.repository, tracer = context_.tracer](const auto& request,
                                                                   auto& response) {
        return AnswerWith(AnswerTraceSettings(request, *repository, tracer), response);
      });
}

void InferenceService::AddRegionMethods(RpcRoutes& routes) {
  using namespace inference;
  const auto path = [](const char* method) { return absl::StrCat(kService, method); };
  SharedRegions* const regions = context_.regions;
  AddMethod<SystemSharedMemoryStatusRequest, SystemSharedMemoryStatusResponse>(
      routes, path("SystemSharedMemoryStatus"),
      [regions](const auto& request, auto& response) -> absl::Status {
        ASSIGN_OR_RETURN(const auto infos, ListRegions(regions, request.name()));
        for (const RegionInfo& info : infos) {
          auto& region = (*response.mutable_regions())[info.name];
          region.set_name(info.name);
          region.set_key(info.key);
          region.set_offset(static_cast<uint64_t>(info.offset));
          region.set_byte_size(static_cast<uint64_t>(info.bytes));
        }
        return absl::OkStatus();
      });
  AddMethod<SystemSharedMemoryRegisterRequest, SystemSharedMemoryRegisterResponse>(
      routes, path("SystemSharedMemoryRegister"),
      [regions](const auto& request, auto&) -> absl::Status {
        RETURN_IF_ERROR(CheckRegionsAreOn(regions));
        // Sizes of more than 63 bits turn negative, and are refused as such.
        return regions->Register({.name = request.name(),
                                  .key = request.key(),
                                  .offset = static_cast<int64_t>(request.offset()),
                                  .bytes = static_cast<int64_t>(request.byte_size())});
      });
  AddMethod<SystemSharedMemoryUnregisterRequest, SystemSharedMemoryUnregisterResponse>(
      routes, path("SystemSharedMemoryUnregister"), [regions](const auto& request, auto&) {
        UnregisterRegions(regions, request.name());
        return absl::OkStatus();
      });
  AddMethod<CudaSharedMemoryStatusRequest, CudaSharedMemoryStatusResponse>(
      routes, path("CudaSharedMemoryStatus"),
      [](const auto& request, auto&) { return ListRegions(nullptr, request.name()).status(); });
  AddMethod<CudaSharedMemoryUnregisterRequest, CudaSharedMemoryUnregisterResponse>(
      routes, path("CudaSharedMemoryUnregister"),
      [](const auto&, auto&) { return absl::OkStatus(); });
  AddMethod<CudaSharedMemoryRegisterRequest, CudaSharedMemoryRegisterResponse>(
      routes, path("CudaSharedMemoryRegister"),
      [](const auto&, auto&) { return NoDeviceRegions(); });
}

}  // namespace reprise
