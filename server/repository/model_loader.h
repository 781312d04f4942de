// Loading one version: engine and config come together.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/engine/engine.h"
#include "server/hub/text_models.h"
#include "server/repository/repository.h"
#include "server/repository/servable.h"
#include "server/repository/server_state.h"

namespace reprise {

// `folder` holds the version's files. A warm-up ends where the server stops. The caller gives it a
// queue before requests may find it. What the folder says of texts goes to `texts` (null: nowhere).
// Errors: what Engine::Load says, and contradictions between config.pbtxt and the model.
absl::StatusOr<std::shared_ptr<Servable>> LoadServable(Engine& engine, const ModelVersion& version,
                                                       const std::string& folder,
                                                       const ModelSettings& settings,
                                                       const ServerState& state,
                                                       TextModels* texts = nullptr);

// The wishes of the configuration that the model cannot have, a sentence each with the
// reason: buckets of an axis that may not be padded, and of a model that captures nothing.
std::vector<std::string> UnusedSettings(const Servable& servable);

}  // namespace reprise
