// Codec: inference messages <-> the core's views. Tensor bytes are not copied on the way in,
// except for typed contents narrower than their field (INT8, INT16, UINT8, UINT16); on the way
// out they move.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "absl/status/status.h"
#include "proto/grpc_service.pb.h"
#include "server/protocol/request_parameters.h"
#include "server/requests/inference.h"
#include "server/requests/request.h"

namespace reprise {

struct DecodedRequest {
  InferRequest view;  // points into the message and into `converted`
  std::deque<std::string> converted;
};

ParameterValue ValueOf(const inference::InferParameter& value);

// `message` must outlive `decoded`. Errors: INVALID_ARGUMENT and UNIMPLEMENTED, naming the field.
absl::Status Decode(const inference::ModelInferRequest& message, DecodedRequest& decoded);

// `result` must be OK. Errors: RESOURCE_EXHAUSTED when the answer exceeds the limit of a message.
absl::Status Encode(InferResult result, const std::string& id,
                    inference::ModelInferResponse& message);

}  // namespace reprise
