#include "server/protocol/answers.h"

#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "server/protocol/statistics.h"
#include "server/wire/datatype.h"
#include "server/wire/error_table.h"

namespace reprise {
namespace {

// Fills in the tensors that clients see.
void FillTensors(
    const std::vector<ModelIo>& ios, const std::vector<bool>& hidden,
    google::protobuf::RepeatedPtrField<inference::ModelMetadataResponse::TensorMetadata>& list) {
  for (size_t i = 0; i < ios.size(); ++i) {
    if (!hidden.empty() && hidden[i]) continue;
    const ModelIo& io = ios[i];
    inference::ModelMetadataResponse::TensorMetadata& tensor = *list.Add();
    tensor.set_name(io.name);
    tensor.set_datatype(std::string(ProtocolName(io)));
    for (const int64_t dim : MetadataShape(io)) tensor.add_shape(dim);
  }
}

}  // namespace

inference::ServerMetadataResponse AnswerServerMetadata(const std::string& version) {
  inference::ServerMetadataResponse response;
  response.set_name("reprise");
  response.set_version(version);
  for (const char* extension :
       {"binary_tensor_data", "model_configuration", "model_repository", "statistics"}) {
    response.add_extensions(extension);
  }
  return response;
}

absl::StatusOr<inference::ModelMetadataResponse> AnswerModelMetadata(const Repository& repository,
                                                                     const std::string& model,
                                                                     const std::string& version) {
  ASSIGN_OR_RETURN(const Repository::Found found, repository.Find(model, version));
  inference::ModelMetadataResponse response;
  const Signature& signature = found.servable->signature;
  response.set_name(found.version->name);
  for (const Repository::Listed& listed : repository.List()) {
    if (listed.version->name == found.version->name && listed.servable != nullptr) {
      response.add_versions(listed.version->version);
    }
  }
  response.set_platform(signature.config.platform());
  FillTensors(signature.inputs, signature.hidden.inputs, *response.mutable_inputs());
  FillTensors(signature.outputs, signature.hidden.outputs, *response.mutable_outputs());
  return response;
}

absl::StatusOr<inference::ModelConfigResponse> AnswerModelConfig(const Repository& repository,
                                                                 const std::string& model,
                                                                 const std::string& version) {
  ASSIGN_OR_RETURN(const Repository::Found found, repository.Find(model, version));
  inference::ModelConfigResponse response;
  *response.mutable_config() = found.servable->signature.config;
  return response;
}

absl::StatusOr<inference::ModelStatisticsResponse> AnswerModelStatistics(
    const Repository& repository, const std::string& model, const std::string& version) {
  if (!model.empty()) RETURN_IF_ERROR(repository.Find(model, version).status());
  inference::ModelStatisticsResponse response;
  for (const Repository::Listed& listed : repository.List()) {
    if (listed.servable == nullptr) continue;
    if (!model.empty() && model != listed.version->name) continue;
    if (!version.empty() && version != listed.version->version) continue;
    EncodeStatistics(*listed.version, *response.add_model_stats());
  }
  return response;
}

inference::RepositoryIndexResponse AnswerRepositoryIndex(const Repository& repository,
                                                         bool only_ready) {
  inference::RepositoryIndexResponse response;
  for (const Repository::Listed& listed : repository.List()) {
    if (only_ready && listed.state != ModelState::kReady) continue;
    inference::RepositoryIndexResponse::ModelIndex& model = *response.add_models();
    model.set_name(listed.version->name);
    model.set_version(listed.version->version);
    model.set_state(ModelStateName(listed.state));
    model.set_reason(listed.state == ModelState::kUnloaded ? "unloaded" : ErrorMessage(listed.why));
    if (listed.why.ok() && listed.servable != nullptr) {
      model.set_reason(ConditionText(*listed.servable));
    }
  }
  return response;
}

absl::StatusOr<v1::ChangeModelResponse> AnswerModelChange(Repository& repository,
                                                          const std::string& model,
                                                          const std::string& version,
                                                          ModelChange change) {
  ASSIGN_OR_RETURN(const std::vector<Repository::Found> changed,
                   repository.Change(model, version, change));
  v1::ChangeModelResponse response;
  for (const Repository::Found& one : changed) {
    v1::ModelCondition& condition = *response.add_models();
    condition.set_model(one.version->name);
    condition.set_version(one.version->version);
    condition.set_frozen(one.servable->IsFrozen());
    condition.set_asleep(IsAsleep(*one.servable));
  }
  return response;
}

std::vector<AnswerParameter> AnswerParameters(const InferResult& result) {
  const ReplayInfo& info = result.response.info;
  std::vector<AnswerParameter> parameters = {
      {"reprise.bucket", info.bucket},
      {"reprise.recipe", info.recipe},
      {"reprise.capture", std::string(CaptureOutcomeName(info.capture))},
      {"reprise.batch", info.batch},
      {"reprise.batch_size", info.batch_size},
      {"reprise.batches", absl::StrJoin(result.batches, ",")}};
  if (result.text_tokens > 0) parameters.emplace_back("reprise.tokens", result.text_tokens);
  return parameters;
}

absl::string_view DatatypeOfAnswer(const InferResult& result, size_t i) {
  if (i < result.classified.size() && result.classified[i]) return kTextDatatype;
  return ProtocolName(result.model.servable->signature.outputs[result.outputs[i]]);
}

}  // namespace reprise
