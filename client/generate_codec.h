// Requests for tokens to messages, and messages to tokens.
#pragma once

#include "absl/status/statusor.h"
#include "client/client.h"
#include "proto/grpc_service.pb.h"

namespace reprise::client {

inference::ModelInferRequest ToMessage(const GenerateRequest& request);

// INTERNAL if the message's parts do not fit each other.
absl::StatusOr<GeneratedTokens> TokensOf(const inference::ModelInferResponse& message);

}  // namespace reprise::client
