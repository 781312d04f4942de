// InferCall: one ModelInfer between gRPC and the core.
#pragma once

#include <memory>

#include "runtime/base/clock.h"
#include "server/generate/token_calls.h"
#include "server/http2/rpc_routes.h"
#include "server/requests/inference.h"
#include "server/transport/open_answers.h"

namespace reprise {

// Returns the method that starts requests and answers them; a request for tokens is answered with
// all of them. A cancelled call leaves the queue. An answer is in `open` from before the core is
// through with the request until it is sent. All outlive the method.
RpcMethod InferMethod(Inference& inference, const TokenCalls& tokens, const Clock& clock,
                      OpenAnswers& open);

// Returns the deadline that the client gave, on the server's clock; kNoDeadline where it gave none.
int64_t DeadlineNs(const CallHead& head, const Clock& clock);

}  // namespace reprise
