// InferCall: one ModelInfer between gRPC and the core.
#pragma once

#include <grpcpp/grpcpp.h>

#include "proto/grpc_service.pb.h"
#include "runtime/base/clock.h"
#include "server/generate/token_calls.h"
#include "server/requests/inference.h"
#include "server/transport/open_answers.h"

namespace reprise {

// Starts the request and returns the reactor that finishes the call; gRPC owns it. The messages
// live until the call is done. A cancelled call leaves the queue. An answer is in `open` from
// before the core is through with the request until it is sent.
grpc::ServerUnaryReactor* StartInfer(Inference& inference, const TokenCalls& tokens,
                                     const Clock& clock, OpenAnswers& open,
                                     grpc::CallbackServerContext& context,
                                     const inference::ModelInferRequest& request,
                                     inference::ModelInferResponse& response);

}  // namespace reprise
