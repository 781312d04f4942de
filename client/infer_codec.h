// InferRequest to message. The way back is InferResult::FromMessage.
#pragma once

#include "client/client.h"
#include "proto/grpc_service.pb.h"

namespace reprise::client {

// Tensors travel raw, one entry for each input that lies in no shared memory, in order.
inference::ModelInferRequest ToMessage(const InferRequest& request);

}  // namespace reprise::client
