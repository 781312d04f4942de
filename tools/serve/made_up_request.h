// A request of made-up inputs at sizes that a person names: a bucket, or a size for each axis.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/random_inputs.h"
#include "runtime/engine/model/model.h"

namespace reprise::cli {

struct RequestSizes {
  AxisSizes sizes;      // keyed by axis label
  bool packed = false;  // the request fills a packed replay
  int64_t bucket_tokens =
      0;  // packed: the tokens of the bucket, which rows of one length may not fill
};

// Returns the sizes that `text` names: a bucket of the model ("b1_s128"; of a packed model "t512",
// filled with rows of the largest length), or any sizes ("batch=1,sequence=100"). Empty text: the
// smallest padded bucket. INVALID_ARGUMENT lists the existing ones.
absl::StatusOr<RequestSizes> SizesOf(const Model& model, const std::string& text);

// A request and the tensors that it points into.
struct MadeUpRequest {
  std::vector<OwnedTensor> tensors;
  Request request;
};

// The ids that commands draw where nothing says how many there are.
inline constexpr int64_t kMadeUpIds = 1000;

// Inputs of `sizes` with made-up values, ids up to `max_id`; inputs that may be left out are. The
// same arguments give the same values.
absl::StatusOr<MadeUpRequest> MakeUpRequest(const Model& model, const AxisSizes& sizes,
                                            int64_t max_id, uint64_t seed = 1);

// Returns the request that `json` holds, in a form of client/cli/json_inputs.h, or a file of it.
// NOT_FOUND where that cannot be read, INVALID_ARGUMENT where an input is missing.
absl::StatusOr<MadeUpRequest> RequestOfJson(const Model& model, const std::string& json);

// Returns the inputs that a request must have, as a client sees them: open dims are -1.
inference::ModelMetadataResponse MetadataOf(const Model& model);
// Returns the request of `tensors`, the tensors of MetadataOf(model), by name and in any order.
Request RequestOfTensors(const Model& model, const std::vector<OwnedTensor>& tensors);

}  // namespace reprise::cli
