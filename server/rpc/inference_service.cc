#include "server/rpc/inference_service.h"

#include "absl/strings/str_cat.h"
#include "server/core/datatype.h"
#include "server/rpc/infer_call.h"
#include "server/rpc/statistics_codec.h"
#include "server/rpc/status.h"

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

void FillTensors(
    const std::vector<ModelIo>& ios,
    google::protobuf::RepeatedPtrField<inference::ModelMetadataResponse::TensorMetadata>& list) {
  for (const ModelIo& io : ios) {
    inference::ModelMetadataResponse::TensorMetadata& tensor = *list.Add();
    tensor.set_name(io.name);
    tensor.set_datatype(std::string(ProtocolName(io.dtype)));
    for (const int64_t dim : MetadataShape(io)) tensor.add_shape(dim);
  }
}

}  // namespace

Reactor* InferenceService::ServerLive(CallContext* call, const inference::ServerLiveRequest*,
                                      inference::ServerLiveResponse* response) {
  response->set_live(true);
  return Finish(call, absl::OkStatus());
}

Reactor* InferenceService::ServerReady(CallContext* call, const inference::ServerReadyRequest*,
                                       inference::ServerReadyResponse* response) {
  response->set_ready(context_.state->ready());
  return Finish(call, absl::OkStatus());
}

Reactor* InferenceService::ModelReady(CallContext* call,
                                      const inference::ModelReadyRequest* request,
                                      inference::ModelReadyResponse* response) {
  const bool draining = context_.state->state() == ServerState::State::kDraining;
  response->set_ready(!draining &&
                      context_.repository->Find(request->name(), request->version()).ok());
  return Finish(call, absl::OkStatus());
}

Reactor* InferenceService::ServerMetadata(CallContext* call,
                                          const inference::ServerMetadataRequest*,
                                          inference::ServerMetadataResponse* response) {
  response->set_name("reprise");
  response->set_version(context_.version);
  for (const char* extension : {"model_configuration", "statistics"}) {
    response->add_extensions(extension);
  }
  return Finish(call, absl::OkStatus());
}

Reactor* InferenceService::ModelMetadata(CallContext* call,
                                         const inference::ModelMetadataRequest* request,
                                         inference::ModelMetadataResponse* response) {
  auto found = context_.repository->Find(request->name(), request->version());
  if (!found.ok()) return Finish(call, found.status());
  const Signature& signature = found->servable->signature;
  response->set_name(found->version->name);
  for (const Repository::Listed& listed : context_.repository->List()) {
    if (listed.version->name == found->version->name && listed.servable != nullptr) {
      response->add_versions(listed.version->version);
    }
  }
  response->set_platform(signature.config.platform());
  FillTensors(signature.inputs, *response->mutable_inputs());
  FillTensors(signature.outputs, *response->mutable_outputs());
  return Finish(call, absl::OkStatus());
}

Reactor* InferenceService::ModelInfer(CallContext* call,
                                      const inference::ModelInferRequest* request,
                                      inference::ModelInferResponse* response) {
  return StartInfer(*context_.inference, *context_.clock, open_answers_, *call, *request,
                    *response);
}

Reactor* InferenceService::ModelConfig(CallContext* call,
                                       const inference::ModelConfigRequest* request,
                                       inference::ModelConfigResponse* response) {
  auto found = context_.repository->Find(request->name(), request->version());
  if (!found.ok()) return Finish(call, found.status());
  *response->mutable_config() = found->servable->signature.config;
  return Finish(call, absl::OkStatus());
}

Reactor* InferenceService::ModelStatistics(CallContext* call,
                                           const inference::ModelStatisticsRequest* request,
                                           inference::ModelStatisticsResponse* response) {
  if (!request->name().empty()) {
    auto found = context_.repository->Find(request->name(), request->version());
    if (!found.ok()) return Finish(call, found.status());
  }
  for (const Repository::Listed& listed : context_.repository->List()) {
    const ModelVersion& version = *listed.version;
    if (listed.servable == nullptr) continue;
    if (!request->name().empty() && request->name() != version.name) continue;
    if (!request->version().empty() && request->version() != version.version) continue;
    EncodeStatistics(version, *response->add_model_stats());
  }
  return Finish(call, absl::OkStatus());
}

Reactor* InferenceService::RepositoryIndex(CallContext* call,
                                           const inference::RepositoryIndexRequest* request,
                                           inference::RepositoryIndexResponse* response) {
  for (const Repository::Listed& listed : context_.repository->List()) {
    if (request->ready() && listed.state != ModelState::kReady) continue;
    inference::RepositoryIndexResponse::ModelIndex& model = *response->add_models();
    model.set_name(listed.version->name);
    model.set_version(listed.version->version);
    model.set_state(ModelStateName(listed.state));
    model.set_reason(ErrorMessage(listed.why));
  }
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

grpc::ServerBidiReactor<inference::ModelInferRequest, inference::ModelStreamInferResponse>*
InferenceService::ModelStreamInfer(CallContext*) {
  class Refusal final : public grpc::ServerBidiReactor<inference::ModelInferRequest,
                                                       inference::ModelStreamInferResponse> {
   public:
    Refusal() { Finish(ToGrpc(absl::UnimplementedError("ModelStreamInfer is not supported"))); }
    void OnDone() override { delete this; }
  };
  return new Refusal;
}

Reactor* InferenceService::RepositoryModelLoad(CallContext* call,
                                               const inference::RepositoryModelLoadRequest*,
                                               inference::RepositoryModelLoadResponse*) {
  return FinishUnsupported(call, "RepositoryModelLoad");
}

Reactor* InferenceService::RepositoryModelUnload(CallContext* call,
                                                 const inference::RepositoryModelUnloadRequest*,
                                                 inference::RepositoryModelUnloadResponse*) {
  return FinishUnsupported(call, "RepositoryModelUnload");
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
