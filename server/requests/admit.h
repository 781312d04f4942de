// The stage `admit`: which model is asked, and does the request fit its signature? Every error
// names the culprit and both values. Sizes are multiplied with overflow checks before anything is
// compared or allocated.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/engine/types/request.h"
#include "runtime/onnx/model_io.h"
#include "server/config/model_settings.h"
#include "server/repository/signature.h"
#include "server/requests/stage.h"

namespace reprise {

// INVALID_ARGUMENT for an id of a client that is longer than reports and answers repeat.
absl::Status CheckId(absl::string_view id);

// Errors: NOT_FOUND and UNAVAILABLE as Repository::Find says, INVALID_ARGUMENT as the steps below.
absl::Status Admit(const Repository& repository, const InferRequest& asked, RequestState& state);

struct Admitted {
  Request request;                  // points into the transport's memory
  std::vector<int> wanted_outputs;  // positions, in the order in which the client asked
};

// Checks names, datatypes, ranks, fixed dims, byte counts and requested outputs; the bytes of a
// text are those that were sent. Tensors that are `hidden` are the server's own. Errors:
// INVALID_ARGUMENT. Whether sizes of one axis agree between inputs is Model::Measure's business.
absl::StatusOr<Admitted> FitSignature(absl::Span<const ModelIo> inputs,
                                      absl::Span<const ModelIo> outputs,
                                      const InferRequest& request,
                                      const HiddenTensors& hidden = {});

// Returns when the request must have been started: the transport's deadline or its own timeout,
// whichever comes first. Errors: INVALID_ARGUMENT for a negative timeout.
absl::StatusOr<int64_t> StartDeadline(const ModelSettings& settings, const InferRequest& request,
                                      int64_t now_ns);

// Returns when the request must be answered: the transport's deadline or its own timeout. The time
// that a model gives requests in its queue is none of these. Call after StartDeadline, which looks
// for errors.
int64_t EndDeadline(const ModelSettings& settings, const InferRequest& request, int64_t now_ns);

// Returns the place in the queue. Errors: INVALID_ARGUMENT for a priority that the model does not
// have.
absl::StatusOr<uint64_t> Priority(const ModelSettings& settings, const InferRequest& request);

}  // namespace reprise
