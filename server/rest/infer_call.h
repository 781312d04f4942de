// One inference between HTTP and the core.
#pragma once

#include <memory>
#include <string>

#include "runtime/engine/types/memory_budget.h"
#include "server/http/http_message.h"
#include "server/repository/repository.h"
#include "server/requests/inference.h"

namespace reprise {

// Starts the request; `exchange` is answered once, whatever happens. A client that goes away takes
// its request out of the queue, or out of the replay that it is part of. `parsing`: see InferJson.
void StartInferOverHttp(Inference& inference, MemoryBudget& parsing,
                        const std::shared_ptr<HttpExchange>& exchange, const std::string& model,
                        const std::string& version);

// Does the same for a request of the V1 protocol. `repository` outlives the call.
void StartPredictOverHttp(Inference& inference, const Repository& repository, MemoryBudget& parsing,
                          const std::shared_ptr<HttpExchange>& exchange, const std::string& model,
                          const std::string& version);

}  // namespace reprise
