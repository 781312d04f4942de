// The stage `key limits`: does the client's key allow one more request now?
#pragma once

#include "absl/status/status.h"
#include "server/requests/stage.h"

namespace reprise {

// Counts the request against the limits of its key until it is answered. Errors: RESOURCE_EXHAUSTED
// naming the key and the limit.
absl::Status CountAgainstKey(const InferRequest& asked, RequestState& state);

}  // namespace reprise
