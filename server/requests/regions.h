// Tensors of a request that lie in shared memory: inputs are read before the request is queued, and
// outputs are written by its last step.
//
// A request that does not fit its model costs no copy: inputs are given memory at once, which
// counts as bytes in flight, and are read into it after admission.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "server/requests/request.h"
#include "server/requests/stage.h"
#include "server/shared_memory/shared_regions.h"

namespace reprise {

bool UsesRegions(const InferRequest& request);

// Gives each input in a region memory, which `state` holds until the answer, and lets the answer
// put outputs where `request` says. `regions` null: there is no shared memory. Errors:
// UNIMPLEMENTED then; NOT_FOUND, INVALID_ARGUMENT and RESOURCE_EXHAUSTED naming the tensor.
absl::Status PlaceInRegions(const SharedRegions* regions, InferRequest& request,
                            RequestState& state);

// Reads, as a stage, the inputs, once however often it is called. Errors: FAILED_PRECONDITION for
// a region that its client has cut.
absl::Status ReadRegions(const InferRequest& asked, RequestState& state);

}  // namespace reprise
