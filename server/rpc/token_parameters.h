// Parameters of a message that asks for tokens.
#pragma once

#include "absl/status/status.h"
#include "proto/grpc_service.pb.h"
#include "server/generate/sampling_parameters.h"
#include "server/rpc/codec.h"

namespace reprise {

inline absl::Status TakeTokenParameters(const inference::ModelInferRequest& message,
                                        SamplingParameters& parameters) {
  for (const auto& [name, value] : message.parameters()) {
    if (absl::Status set = parameters.Set(name, ValueOf(value)); !set.ok()) return set;
  }
  return absl::OkStatus();
}

}  // namespace reprise
