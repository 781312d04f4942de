// ModelChange: how a model is told to behave differently while it serves.
#pragma once

namespace reprise {

enum class ModelChange {
  kFreeze,  // nothing is captured for a request from now on
  kThaw,    // something may be, whatever flags and configuration say
};

// Returns "frozen", "thawed": how the model is afterwards.
inline const char* ChangedText(ModelChange change) {
  return change == ModelChange::kFreeze ? "frozen" : "thawed";
}

}  // namespace reprise
