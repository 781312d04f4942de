#include "server/repository/model_change.h"

#include <algorithm>
#include <set>

#include "runtime/base/status_macros.h"
#include "server/repository/ranked_servables.h"

namespace reprise {
namespace {

// Adds the models that answer requests of the version: of both sides of a file, of each choice of
// ranks, and of an encoder with its decoder.
void AddModels(const Servable& servable, std::set<const Model*>& models) {
  models.insert(servable.model.get());
  if (servable.picture_side != nullptr) AddModels(*servable.picture_side, models);
  if (servable.ranked != nullptr) {
    for (const auto& one : servable.ranked->Loaded()) AddModels(*one, models);
  }
  if (servable.generation != nullptr) {
    const Generator& generator = servable.generation->generator();
    models.insert(&generator.model());
    models.insert(generator.options().encoder.encoder.get());
    models.insert(generator.options().encoder.cross.get());
  }
  models.erase(nullptr);
}

std::set<const Model*> ModelsOf(const Servable& servable) {
  std::set<const Model*> models;
  AddModels(servable, models);
  return models;
}

}  // namespace

const char* ChangedText(ModelChange change) {
  switch (change) {
    case ModelChange::kFreeze:
      return "is frozen";
    case ModelChange::kThaw:
      return "is thawed";
    case ModelChange::kSleep:
      return "is asleep";
    case ModelChange::kWake:
      return "is awake";
  }
  return "";
}

absl::Status ApplyChange(const Servable& servable, ModelChange change) {
  if (change == ModelChange::kFreeze || change == ModelChange::kThaw) {
    servable.freeze.Set(change == ModelChange::kFreeze);
    return absl::OkStatus();
  }
  for (const Model* model : ModelsOf(servable)) {
    ParameterStore& parameters = model->owner()->parameters();
    if (change == ModelChange::kSleep) {
      parameters.Sleep();
    } else {
      RETURN_IF_ERROR(parameters.Wake());
    }
  }
  return absl::OkStatus();
}

bool IsAsleep(const Servable& servable) {
  const std::set<const Model*> models = ModelsOf(servable);
  return !models.empty() && std::all_of(models.begin(), models.end(), [](const Model* model) {
    return model->owner()->parameters().asleep();
  });
}

std::string ConditionText(const Servable& servable) {
  std::string text = servable.IsFrozen() ? "frozen" : "";
  if (IsAsleep(servable)) text += text.empty() ? "asleep" : ", asleep";
  return text;
}

}  // namespace reprise
