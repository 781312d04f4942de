#include "client/client.h"

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <limits>
#include <mutex>
#include <set>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/generate_codec.h"
#include "client/infer_codec.h"
#include "proto/admin.grpc.pb.h"
#include "proto/grpc_service.grpc.pb.h"
#include "runtime/base/status_macros.h"

namespace reprise::client {
namespace {

std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(const TlsOptions& tls) {
  if (!tls.use) return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials({.pem_root_certs = tls.authorities,
                               .pem_private_key = tls.key,
                               .pem_cert_chain = tls.certificate});
}

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& target, const TlsOptions& tls) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(std::numeric_limits<int>::max());
  arguments.SetMaxSendMessageSize(std::numeric_limits<int>::max());
  // A server that restarts is found again at once, not after gRPC's growing back-off.
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  if (!tls.server_name.empty()) arguments.SetSslTargetNameOverride(tls.server_name);
  return grpc::CreateCustomChannel(target, CredentialsOf(tls), arguments);
}

using Inference = inference::GRPCInferenceService::Stub;
using Admin = v1::Admin::Stub;

// Returns a request of the inference protocol for a version of a model.
template <typename Request>
Request Named(absl::string_view model, absl::string_view version) {
  Request request;
  request.set_name(std::string(model));
  request.set_version(std::string(version));
  return request;
}

// Returns a request of the admin service about a version of a model.
template <typename Request>
Request About(absl::string_view model, absl::string_view version) {
  Request request;
  request.set_model(std::string(model));
  request.set_version(std::string(version));
  return request;
}

}  // namespace

struct Client::State {
  State(const ClientOptions& options, std::shared_ptr<grpc::Channel> c)
      : options(options),
        channel(std::move(c)),
        inference(inference::GRPCInferenceService::NewStub(channel)),
        admin(v1::Admin::NewStub(channel)) {}

  absl::Status ToStatus(const grpc::Status& status) const {
    if (status.ok()) return absl::OkStatus();
    // gRPC words a refused or lost connection in many ways; a server that answers words it itself,
    // and then the connection stands.
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE &&
        channel->GetState(false) != GRPC_CHANNEL_READY) {
      return absl::UnavailableError(
          absl::StrCat("no answer from ", options.target, ": ", status.error_message()));
    }
    return {static_cast<absl::StatusCode>(status.error_code()), status.error_message()};
  }

  void Prepare(grpc::ClientContext& context) const {
    if (!options.api_key.empty()) context.AddMetadata("x-api-key", options.api_key);
    if (options.timeout.count() > 0) {
      context.set_deadline(std::chrono::system_clock::now() + options.timeout);
    }
  }

  // Makes one unary call, from start to end.
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request) const {
    grpc::ClientContext context;
    Prepare(context);
    Response response;
    Stub* stub = nullptr;
    if constexpr (std::is_same_v<Stub, Admin>) {
      stub = admin.get();
    } else {
      stub = inference.get();
    }
    RETURN_IF_ERROR(ToStatus((stub->*method)(&context, request, &response)));
    return response;
  }

  // Constant after construction.
  const ClientOptions& options;
  const std::shared_ptr<grpc::Channel> channel;
  const std::unique_ptr<Inference> inference;
  const std::unique_ptr<Admin> admin;

  std::mutex mutex;
  std::condition_variable idle;
  int in_flight = 0;  // guarded by mutex: callbacks that have not returned
};

Client::Client(const ClientOptions& options)
    : Client(options, MakeChannel(options.target, options.tls)) {}

Client::Client(ClientOptions options, std::shared_ptr<grpc::Channel> channel)
    : options_(std::move(options)), state_(std::make_unique<State>(options_, std::move(channel))) {}

Client::~Client() {
  std::unique_lock lock(state_->mutex);
  state_->idle.wait(lock, [this] { return state_->in_flight == 0; });
}

absl::StatusOr<InferResult> Client::Infer(const InferRequest& request) {
  grpc::ClientContext context;
  state_->Prepare(context);
  auto response = std::make_unique<inference::ModelInferResponse>();
  const grpc::Status status =
      state_->inference->ModelInfer(&context, ToMessage(request), response.get());
  RETURN_IF_ERROR(state_->ToStatus(status));
  return InferResult::FromMessage(std::move(response));
}

void Client::InferAsync(const InferRequest& request, InferCallback done) {
  struct Pending {
    grpc::ClientContext context;
    inference::ModelInferRequest request;
    std::unique_ptr<inference::ModelInferResponse> response;
    InferCallback done;
  };
  auto pending = std::make_shared<Pending>();
  pending->request = ToMessage(request);
  pending->response = std::make_unique<inference::ModelInferResponse>();
  pending->done = std::move(done);
  state_->Prepare(pending->context);
  {
    std::lock_guard lock(state_->mutex);
    ++state_->in_flight;
  }
  state_->inference->async()->ModelInfer(
      &pending->context, &pending->request, pending->response.get(),
      [this, pending](const grpc::Status& grpc_status) {
        absl::Status status = state_->ToStatus(grpc_status);
        pending->done(status.ok() ? InferResult::FromMessage(std::move(pending->response))
                                  : absl::StatusOr<InferResult>(std::move(status)));
        // Notified under the lock: once it is released the destructor may free the state.
        std::lock_guard lock(state_->mutex);
        if (--state_->in_flight == 0) state_->idle.notify_all();
      });
}

absl::Status Client::RegisterSharedMemory(absl::string_view region, absl::string_view key,
                                          size_t bytes, size_t offset) {
  inference::SystemSharedMemoryRegisterRequest request;
  request.set_name(std::string(region));
  request.set_key(std::string(key));
  request.set_byte_size(bytes);
  request.set_offset(offset);
  return state_->Call(&Inference::SystemSharedMemoryRegister, request).status();
}

absl::Status Client::UnregisterSharedMemory(absl::string_view region) {
  inference::SystemSharedMemoryUnregisterRequest request;
  request.set_name(std::string(region));
  return state_->Call(&Inference::SystemSharedMemoryUnregister, request).status();
}

absl::Status Client::Generate(const GenerateRequest& request,
                              const std::function<bool(const GeneratedTokens&)>& on_tokens) {
  grpc::ClientContext context;
  state_->Prepare(context);
  const auto stream = state_->inference->ModelStreamInfer(&context);
  stream->Write(ToMessage(request));
  stream->WritesDone();
  absl::Status told;
  inference::ModelStreamInferResponse response;
  bool goes_on = true;
  while (goes_on && told.ok() && stream->Read(&response)) {
    if (!response.error_message().empty()) {
      told = absl::UnknownError(response.error_message());
      break;
    }
    absl::StatusOr<GeneratedTokens> tokens = TokensOf(response.infer_response());
    if (tokens.ok()) {
      goes_on = on_tokens(*tokens);
    } else {
      told = tokens.status();
    }
  }
  if (!goes_on || !told.ok()) context.TryCancel();
  const grpc::Status ended = stream->Finish();
  if (!told.ok() || !goes_on) return told;
  return state_->ToStatus(ended);
}

absl::Status Client::WaitForConnection(std::chrono::milliseconds patience) {
  if (state_->channel->WaitForConnected(std::chrono::system_clock::now() + patience)) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat("no server answers at ", options_.target));
}

absl::StatusOr<bool> Client::ServerReady() {
  ASSIGN_OR_RETURN(auto response,
                   state_->Call(&Inference::ServerReady, inference::ServerReadyRequest()));
  return response.ready();
}

absl::StatusOr<bool> Client::ModelReady(absl::string_view model, absl::string_view version) {
  ASSIGN_OR_RETURN(
      auto response,
      state_->Call(&Inference::ModelReady, Named<inference::ModelReadyRequest>(model, version)));
  return response.ready();
}

absl::StatusOr<inference::ModelMetadataResponse> Client::ModelMetadata(absl::string_view model,
                                                                       absl::string_view version) {
  return state_->Call(&Inference::ModelMetadata,
                      Named<inference::ModelMetadataRequest>(model, version));
}

absl::StatusOr<inference::ModelMetadataResponse> Client::RequiredMetadata(
    absl::string_view model, absl::string_view version) {
  ASSIGN_OR_RETURN(inference::ModelMetadataResponse metadata, ModelMetadata(model, version));
  // Not every server has it, and not every key may ask for it: all inputs are sent then.
  const absl::StatusOr<inference::ModelConfigResponse> known = ModelConfig(model, version);
  if (!known.ok()) return metadata;
  std::set<std::string> optional;
  for (const auto& input : known->config().input()) {
    if (input.optional()) optional.insert(input.name());
  }
  auto& inputs = *metadata.mutable_inputs();
  for (int i = inputs.size() - 1; i >= 0; --i) {
    if (optional.contains(inputs[i].name())) inputs.DeleteSubrange(i, 1);
  }
  return metadata;
}

absl::StatusOr<inference::ServerMetadataResponse> Client::ServerMetadata() {
  return state_->Call(&Inference::ServerMetadata, inference::ServerMetadataRequest());
}

absl::StatusOr<inference::ModelConfigResponse> Client::ModelConfig(absl::string_view model,
                                                                   absl::string_view version) {
  return state_->Call(&Inference::ModelConfig,
                      Named<inference::ModelConfigRequest>(model, version));
}

absl::Status Client::LoadModel(absl::string_view model, absl::string_view config) {
  inference::RepositoryModelLoadRequest request;
  request.set_model_name(std::string(model));
  if (!config.empty()) {
    (*request.mutable_parameters())["config"].set_string_param(std::string(config));
  }
  return state_->Call(&Inference::RepositoryModelLoad, request).status();
}

absl::Status Client::UnloadModel(absl::string_view model) {
  inference::RepositoryModelUnloadRequest request;
  request.set_model_name(std::string(model));
  return state_->Call(&Inference::RepositoryModelUnload, request).status();
}

absl::StatusOr<inference::RepositoryIndexResponse> Client::RepositoryIndex() {
  return state_->Call(&Inference::RepositoryIndex, inference::RepositoryIndexRequest());
}

absl::StatusOr<v1::ListRecipesResponse> Client::ListRecipes(absl::string_view model,
                                                            absl::string_view version) {
  return state_->Call(&Admin::ListRecipes, About<v1::ListRecipesRequest>(model, version));
}

absl::StatusOr<v1::ListRecipesResponse> Client::ListEager(absl::string_view model,
                                                          absl::string_view version) {
  auto request = About<v1::ListRecipesRequest>(model, version);
  request.set_eager(true);
  return state_->Call(&Admin::ListRecipes, request);
}

absl::StatusOr<v1::DumpRecipeResponse> Client::DumpRecipe(absl::string_view key, DumpParts parts) {
  v1::DumpRecipeRequest request;
  request.set_key(std::string(key));
  request.set_include_graphs(parts.graphs);
  request.set_include_constants(parts.constants);
  return state_->Call(&Admin::DumpRecipe, request);
}

absl::StatusOr<v1::GetPortsResponse> Client::GetPorts() {
  return state_->Call(&Admin::GetPorts, v1::GetPortsRequest());
}

absl::StatusOr<v1::ExplainMissesResponse> Client::ExplainMisses(absl::string_view model,
                                                                absl::string_view version,
                                                                uint64_t after_sequence) {
  auto request = About<v1::ExplainMissesRequest>(model, version);
  request.set_after_sequence(after_sequence);
  return state_->Call(&Admin::ExplainMisses, request);
}

absl::StatusOr<v1::GetRecompilationsResponse> Client::GetRecompilations(absl::string_view model,
                                                                        absl::string_view version) {
  return state_->Call(&Admin::GetRecompilations,
                      About<v1::GetRecompilationsRequest>(model, version));
}

absl::StatusOr<v1::ExplainModelResponse> Client::ExplainModel(absl::string_view model,
                                                              absl::string_view version) {
  return state_->Call(&Admin::ExplainModel, About<v1::ExplainModelRequest>(model, version));
}

absl::StatusOr<v1::GetDynamicityResponse> Client::GetDynamicity(
    const v1::GetDynamicityRequest& request) {
  return state_->Call(&Admin::GetDynamicity, request);
}

absl::StatusOr<v1::WarmupResponse> Client::Warmup(const v1::WarmupRequest& request) {
  return state_->Call(&Admin::Warmup, request);
}

absl::StatusOr<v1::ChangeModelResponse> Client::ChangeModel(absl::string_view model,
                                                            absl::string_view version,
                                                            v1::ModelChange change) {
  auto request = About<v1::ChangeModelRequest>(model, version);
  request.set_change(change);
  return state_->Call(&Admin::ChangeModel, request);
}

absl::StatusOr<v1::GetStatsResponse> Client::GetStats(absl::string_view model,
                                                      absl::string_view version, bool metrics) {
  auto request = About<v1::GetStatsRequest>(model, version);
  request.set_include_metrics(metrics);
  return state_->Call(&Admin::GetStats, request);
}

}  // namespace reprise::client
