// Tokens of a model that is loaded: its pages and the loop that makes them.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "runtime/engine/engine.h"
#include "runtime/generate/step_gate.h"
#include "server/config/model_settings.h"
#include "server/repository/servable.h"

namespace reprise {

// Tokens are made where the model is a decoder that can be paged. All recipes of its steps are
// captured here, before the model is ready. Errors: RESOURCE_EXHAUSTED without memory, and what
// keeps `ranks` from computing it together; the model reports any other obstacle to tokens.
absl::Status StartGeneration(Engine& engine, const ModelVersion& version, const std::string& path,
                             const ModelSettings& settings, StepGate* gate, RankHub* ranks,
                             Servable& servable);

}  // namespace reprise
