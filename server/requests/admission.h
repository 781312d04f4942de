// Admission: does a request fit the model's signature? Every error names the culprit and both
// values. Sizes are multiplied with overflow checks before anything is compared or allocated.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/engine/request.h"
#include "runtime/onnx/importer.h"
#include "server/config/model_settings.h"
#include "server/requests/request.h"

namespace reprise {

struct Admitted {
  Request request;                  // points into the transport's memory, but for places of texts
  std::vector<int> wanted_outputs;  // positions, in the order in which the client asked
};

// Names, datatypes, ranks, fixed dims, byte counts and requested outputs; texts become places, of
// `vocabulary` or of the request's own. Errors: INVALID_ARGUMENT.
// That sizes of one axis agree between inputs is Model::Measure's business.
absl::StatusOr<Admitted> Admit(absl::Span<const ModelIo> inputs, absl::Span<const ModelIo> outputs,
                               std::shared_ptr<const Vocabulary> vocabulary,
                               const InferRequest& request);

// When the request must have been started: the transport's deadline or its own timeout, whichever
// comes first. Errors: INVALID_ARGUMENT for a negative timeout.
absl::StatusOr<int64_t> StartDeadline(const ModelSettings& settings, const InferRequest& request,
                                      int64_t now_ns);

// The place in the queue. Errors: INVALID_ARGUMENT for a priority that the model does not have.
absl::StatusOr<uint64_t> Priority(const ModelSettings& settings, const InferRequest& request);

}  // namespace reprise
