// ModelChange: how a model is told to behave differently while it serves.
//
// Threads: any.
#pragma once

#include "absl/status/status.h"
#include "server/repository/servable.h"

namespace reprise {

enum class ModelChange {
  kFreeze,  // nothing is captured for a request from now on
  kThaw,    // something may be, whatever flags and configuration say
  kSleep,   // its weights leave memory until a request wants them; its recipes stay
  kWake,    // its weights are prepared again
};

// Returns "is frozen", "is thawed", "is asleep", "is awake".
const char* ChangedText(ModelChange change);

// Changes all models of a version. Errors: of kWake alone, as ParameterStore::Wake.
absl::Status ApplyChange(const Servable& servable, ModelChange change);

// Returns whether the weights of none of its models are in memory.
bool IsAsleep(const Servable& servable);

// Returns "frozen", "asleep", "frozen, asleep"; empty: neither.
std::string ConditionText(const Servable& servable);

}  // namespace reprise
