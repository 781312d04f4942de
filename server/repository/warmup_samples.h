// The samples of `model_warmup`, as Triton has them: requests whose recipes are captured before the
// model is ready. A recipe is made by sizes: the sizes of the samples count, their data do not.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "runtime/engine/model/model.h"
#include "server/config/model_settings.h"
#include "server/repository/signature.h"

namespace reprise {

// Returns the warm-up of `settings` with the sizes of its samples. INVALID_ARGUMENT names the
// sample, and the input and both values where it does not fit the model.
absl::StatusOr<WarmupSettings> WarmupOfSamples(const ModelSettings& settings, const Model& model,
                                               const Signature& signature);

}  // namespace reprise
