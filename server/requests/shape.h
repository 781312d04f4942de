// The stage `shape`: how large a request is, and into how many parts it is cut where one replay
// does not take all of its rows.
#pragma once

#include "absl/status/status.h"
#include "server/requests/stage.h"

namespace reprise {

// Errors: INVALID_ARGUMENT naming the inputs whose shapes disagree, or the size that no bucket
// holds.
absl::Status MeasureShape(const InferRequest& asked, RequestState& state);

}  // namespace reprise
