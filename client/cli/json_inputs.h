// Inputs from JSON.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/random_inputs.h"

namespace reprise::cli {

// Parses two forms. By name, with nested lists; the datatype comes from the model's metadata:
//   {"input_ids": [[101, 7592, 102]], "attention_mask": [[1, 1, 1]]}
// The REST form of the protocol, whose data may be flat:
//   {"inputs": [{"name": "input_ids", "datatype": "INT64", "shape": [1, 3], "data": [101, 7592,
//   102]}]}
// INVALID_ARGUMENT names the input and its fault.
absl::StatusOr<std::vector<OwnedTensor>> ParseJsonInputs(
    absl::string_view text, const inference::ModelMetadataResponse& metadata);

}  // namespace reprise::cli
