// Answers of the protocol about servers, models and replays, as its messages; the faces send them
// as they are or as JSON.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/admin.pb.h"
#include "proto/grpc_service.pb.h"
#include "server/repository/repository.h"
#include "server/requests/inference.h"

namespace reprise {

inference::ServerMetadataResponse AnswerServerMetadata(const std::string& version);

// Answers for a version that is ready; `version` empty: the newest. Errors: as Repository::Find.
absl::StatusOr<inference::ModelMetadataResponse> AnswerModelMetadata(const Repository& repository,
                                                                     const std::string& model,
                                                                     const std::string& version);
absl::StatusOr<inference::ModelConfigResponse> AnswerModelConfig(const Repository& repository,
                                                                 const std::string& model,
                                                                 const std::string& version);
// Returns statistics; `model` empty: of all; `version` empty: of all versions.
absl::StatusOr<inference::ModelStatisticsResponse> AnswerModelStatistics(
    const Repository& repository, const std::string& model, const std::string& version);
inference::RepositoryIndexResponse AnswerRepositoryIndex(const Repository& repository,
                                                         bool only_ready);

// Changes how versions behave, and answers with how they do then. Errors: as Repository::Change.
absl::StatusOr<v1::ChangeModelResponse> AnswerModelChange(Repository& repository,
                                                          const std::string& model,
                                                          const std::string& version,
                                                          ModelChange change);

// The response parameters that describe the replays of an answer, by name.
using AnswerParameter = std::pair<std::string, std::variant<std::string, int64_t>>;
std::vector<AnswerParameter> AnswerParameters(const InferResult& result);

// Returns the name of the type of output number `i` of an answer: the model's, or BYTES where it is
// texts of classes.
absl::string_view DatatypeOfAnswer(const InferResult& result, size_t i);

}  // namespace reprise
