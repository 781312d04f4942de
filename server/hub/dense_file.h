// The modules of a sentence transformer that have weights: Dense and LayerNorm.
#pragma once

#include <filesystem>

#include "absl/status/statusor.h"
#include "server/hub/head_steps.h"

namespace reprise {

// Errors: INVALID_ARGUMENT where the weights and config.json of `folder` contradict each other,
// UNIMPLEMENTED where the weights are not saved as safetensors. `usual_input`: the vectors that a
// layer reads where its file names none.
absl::StatusOr<DenseLayer> ReadDense(const std::filesystem::path& folder, const char* usual_input);
absl::StatusOr<LayerNormStep> ReadLayerNorm(const std::filesystem::path& folder);

}  // namespace reprise
