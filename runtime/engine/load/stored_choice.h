// The choice of the nodes that round, as a record of the recipe store.
//
// It holds for the same graph and names, weights, goal, requests, device and compiler: all of them
// are in the key, and compared in full.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/engine/load/stored_model.h"
#include "runtime/engine/model/precision_choice.h"

namespace reprise {

std::string EncodeChoice(const StoredModelKey& key, const ModelId& id,
                         const PrecisionChoice& choice, int64_t measure_ns);

// Returns DATA_LOSS for bytes that are no choice; FAILED_PRECONDITION for a choice of another key.
absl::StatusOr<PrecisionChoice> DecodeChoice(absl::string_view bytes, const StoredModelKey& key);

}  // namespace reprise
