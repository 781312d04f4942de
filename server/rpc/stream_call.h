// One ModelStreamInfer: a stream of requests, and one of answers.
//
// Each message is a request like any other; they run side by side, and answers come in the order of
// the requests, each as soon as it and those before it are ready. One that fails is answered with
// `error_message`, and the stream goes on. A request for tokens has an answer for each of them,
// which come as they are made, between answers of other requests. A client that does not read its
// answers is read no further: a bounded number of requests of a stream is under way.
#pragma once

#include "runtime/base/clock.h"
#include "server/generate/token_calls.h"
#include "server/http2/rpc_routes.h"
#include "server/requests/inference.h"
#include "server/transport/open_answers.h"

namespace reprise {

// Returns the method. The call ends once the client has sent its last request and each has been
// answered. Requests of a cancelled call leave the queue. All outlive the method.
RpcMethod StreamInferMethod(Inference& inference, const TokenCalls& tokens, const Clock& clock,
                            OpenAnswers& open);

}  // namespace reprise
