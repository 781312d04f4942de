// Loading one version: engine and config come together.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/engine/engine.h"
#include "server/hub/text_models.h"
#include "server/repository/repository.h"
#include "server/repository/servable.h"
#include "server/repository/server_state.h"
#include "server/repository/source_model.h"

namespace reprise {

// The things that one version is loaded from.
struct ServableSource {
  Engine& engine;
  const ModelVersion& version;
  std::string folder;  // holds the version's files
  ModelSettings settings;
  const ServerState& state;     // a warm-up ends where the server stops
  TextModels* texts = nullptr;  // is told the facts about texts in the folder
  StepGate* gate = nullptr;     // that models which make tokens share; null: there is one
  RankHub* ranks = nullptr;     // the ranks that compute models together; null: this server alone
  // Gives a loaded model a queue, before requests may find it.
  std::function<void(Servable&)> open_queue;
  // Returns the file of a model of the repositories; `version` below 1: of its newest. For steps of
  // ensembles.
  std::function<absl::StatusOr<std::string>(const std::string& name, int64_t version)> file_of = {};
  // New weights of the same graph, in place of those of its file; null: there are none. See
  // weights_file.h.
  NewWeights weights = {};
  // The cores of settings.cores, for all models that are loaded for the version; null: those of the
  // engine. LoadServable makes them.
  std::shared_ptr<HelperPool> cores = {};
  // All models that are loaded for the version follow it.
  FreezeSwitch freeze = {};
};

// Loads a version. An input whose rank neither file nor config.pbtxt gives has the rank of each
// request: the result then stands for choices of ranks, of which the first that the model takes is
// there. Errors: as Engine::Load, and contradictions between config.pbtxt and the model.
absl::StatusOr<std::shared_ptr<Servable>> LoadServable(const ServableSource& source);

// Returns the settings of the configuration that the model cannot have, a sentence each with
// the reason: buckets of an axis that may not be padded, and of a model that captures nothing.
std::vector<std::string> UnusedSettings(const Servable& servable);

}  // namespace reprise
