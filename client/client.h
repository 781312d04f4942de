// Client: a typed client of an inference server that speaks KServe v2 over gRPC, and of Reprise's
// admin service.
//
// One Client is one connection, opened at the first call and kept; any number of calls share it.
//
// Ownership: a result owns its message, outputs are views into it.
// Threads:   all methods are safe from any thread. A callback of InferAsync runs on a thread of
//            gRPC's: it may start further calls but must not block. The destructor waits until
//            every callback has returned, so do not destroy a client inside a callback.
// Errors:    the server's status as it came (INVALID_ARGUMENT, NOT_FOUND, UNAVAILABLE,
//            RESOURCE_EXHAUSTED, ...). DEADLINE_EXCEEDED when `timeout` is over. A server that
//            cannot be reached is UNAVAILABLE with its address in the message.
//
//   Client client({.target = "localhost:8001"});
//   std::vector<int64_t> ids = {101, 7592, 102}, mask(3, 1);
//   ASSIGN_OR_RETURN(InferResult result,
//       client.Infer({.model = "minilm",
//                     .inputs = {InputTensor::Of<int64_t>("input_ids", {1, 3}, ids),
//                                InputTensor::Of<int64_t>("attention_mask", {1, 3}, mask)}}));
//   ASSIGN_OR_RETURN(auto hidden, result.outputs()[0].As<float>());
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/tensor.h"
#include "proto/admin.pb.h"
#include "proto/grpc_service.pb.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace reprise::client {

// For a server that speaks TLS. The texts are PEM.
struct TlsOptions {
  bool use = false;
  std::string authorities;  // that the server's certificate must come from; empty: the system's
  std::string certificate;  // shown to servers that require one, with its key; empty: none
  std::string key;
  std::string server_name;  // that the certificate has; empty: the one in the target
};

struct ClientOptions {
  std::string target = "localhost:8001";  // host:port
  // Time for a call, from its start to the last byte of its answer. Zero: no limit.
  std::chrono::milliseconds timeout{30'000};
  std::string api_key;  // sent with each call; empty: none
  TlsOptions tls;
};

struct InferRequest {
  std::string model;
  std::string version;  // empty: the newest
  std::string id;       // echoed by the server
  std::vector<InputTensor> inputs;
  std::vector<std::string> outputs;  // empty, and no output_regions: all
  // By output: where the server is to write its bytes. These outputs are requested as well.
  std::map<std::string, RegionSlice> output_regions = {};
};

class InferResult {
 public:
  // INTERNAL if the message's parts do not fit each other.
  static absl::StatusOr<InferResult> FromMessage(
      std::unique_ptr<inference::ModelInferResponse> message);

  const std::string& model() const { return message_->model_name(); }
  const std::string& version() const { return message_->model_version(); }
  const std::string& id() const { return message_->id(); }
  absl::Span<const OutputTensor> outputs() const { return outputs_; }

  // NOT_FOUND lists the outputs.
  absl::StatusOr<OutputTensor> Output(absl::string_view name) const;

  // Returns a response parameter ("reprise.bucket", "reprise.capture", ...); empty if absent.
  std::string Parameter(absl::string_view name) const;
  // Returns a response parameter as a number; `fallback` if it is absent or no number.
  int64_t IntParameter(absl::string_view name, int64_t fallback) const;

  const inference::ModelInferResponse& message() const { return *message_; }

 private:
  std::unique_ptr<inference::ModelInferResponse> message_;
  std::vector<OutputTensor> outputs_;  // views into *message_
};

// A request for new tokens of a decoder whose cache the server owns.
struct GenerateRequest {
  std::string model;
  std::string version;  // empty: the newest
  std::string id;       // echoed by the server
  std::vector<int64_t> ids;
  std::string ids_input = "input_ids";  // the model's name for them
  // By the names of docs/generation.md ("max_tokens", "temperature" ...); lists and maps are JSON.
  using Value = std::variant<bool, int64_t, double, std::string>;
  std::vector<std::pair<std::string, Value>> parameters;
};

// Tokens of one answer, as they come.
struct GeneratedTokens {
  int64_t answer = 0;  // which one of the request's n
  std::vector<int64_t> ids;
  std::vector<float> logprobs;  // where they were asked for
  std::string finish_reason;    // empty while the answer goes on
};

using InferCallback = std::function<void(absl::StatusOr<InferResult>)>;

class Client {
 public:
  explicit Client(const ClientOptions& options);
  // Over a channel that exists, such as one inside the process.
  Client(ClientOptions options, std::shared_ptr<grpc::Channel> channel);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  absl::StatusOr<InferResult> Infer(const InferRequest& request);
  // Calls `done` exactly once.
  void InferAsync(const InferRequest& request, InferCallback done);

  // Calls `on_tokens` on this thread as tokens come, until all answers have ended. Where it returns
  // false the request is cancelled, and that is no error.
  absl::Status Generate(const GenerateRequest& request,
                        const std::function<bool(const GeneratedTokens&)>& on_tokens);

  // OK when a connection stands; UNAVAILABLE, with the address, if none does after `patience`.
  absl::Status WaitForConnection(std::chrono::milliseconds patience);

  // Tells the server of `bytes` bytes of the object `key` of shared memory (SharedMemory), which
  // tensors name by `region` from now on. ALREADY_EXISTS for a name that is taken; UNIMPLEMENTED
  // where the server runs without --system-shared-memory.
  absl::Status RegisterSharedMemory(absl::string_view region, absl::string_view key, size_t bytes,
                                    size_t offset = 0);
  // Has the server forget it. Empty: all regions.
  absl::Status UnregisterSharedMemory(absl::string_view region);

  absl::StatusOr<bool> ServerReady();
  absl::StatusOr<bool> ModelReady(absl::string_view model, absl::string_view version = "");
  absl::StatusOr<inference::ModelMetadataResponse> ModelMetadata(absl::string_view model,
                                                                 absl::string_view version = "");
  // Returns the same without the inputs that a request may leave out.
  absl::StatusOr<inference::ModelMetadataResponse> RequiredMetadata(absl::string_view model,
                                                                    absl::string_view version = "");
  absl::StatusOr<inference::ServerMetadataResponse> ServerMetadata();
  absl::StatusOr<inference::ModelConfigResponse> ModelConfig(absl::string_view model,
                                                             absl::string_view version = "");
  absl::StatusOr<inference::RepositoryIndexResponse> RepositoryIndex();
  // Has the server load a model, with `config` (the text of a config.pbtxt) in the place of its own
  // where that is not empty; returns once it is ready.
  absl::Status LoadModel(absl::string_view model, absl::string_view config = "");
  absl::Status UnloadModel(absl::string_view model);

  // Lists recipes; empty arguments select everything.
  absl::StatusOr<v1::ListRecipesResponse> ListRecipes(absl::string_view model = "",
                                                      absl::string_view version = "");
  // Returns the recipes of single ops that eager runs have prepared.
  absl::StatusOr<v1::ListRecipesResponse> ListEager(absl::string_view model = "",
                                                    absl::string_view version = "");
  // The parts of a recipe that are told on request alone.
  struct DumpParts {
    bool graphs = false;     // its texts with symbolic sizes, with its sizes and after the passes
    bool constants = false;  // bytes of constants as well; takes the right `admin`
  };
  absl::StatusOr<v1::DumpRecipeResponse> DumpRecipe(absl::string_view key, DumpParts parts);
  absl::StatusOr<v1::DumpRecipeResponse> DumpRecipe(absl::string_view key) {
    return DumpRecipe(key, {});
  }
  // `metrics`: all metrics and captures as JSON as well.
  absl::StatusOr<v1::GetStatsResponse> GetStats(absl::string_view model = "",
                                                absl::string_view version = "",
                                                bool metrics = false);

  absl::StatusOr<v1::GetPortsResponse> GetPorts();
  absl::StatusOr<v1::ExplainMissesResponse> ExplainMisses(absl::string_view model,
                                                          absl::string_view version,
                                                          uint64_t after_sequence);
  absl::StatusOr<v1::GetRecompilationsResponse> GetRecompilations(absl::string_view model = "",
                                                                  absl::string_view version = "");
  absl::StatusOr<v1::ExplainModelResponse> ExplainModel(absl::string_view model,
                                                        absl::string_view version = "");
  absl::StatusOr<v1::GetDynamicityResponse> GetDynamicity(const v1::GetDynamicityRequest& request);
  absl::StatusOr<v1::WarmupResponse> Warmup(const v1::WarmupRequest& request);
  // Changes how models behave while they serve; `model` empty: all that are ready.
  absl::StatusOr<v1::ChangeModelResponse> ChangeModel(absl::string_view model,
                                                      absl::string_view version,
                                                      v1::ModelChange change);

  const std::string& target() const { return options_.target; }

 private:
  struct State;  // stubs and the count of calls in flight

  // Constant after construction.
  const ClientOptions options_;
  const std::unique_ptr<State> state_;  // self-synchronised
};

}  // namespace reprise::client
