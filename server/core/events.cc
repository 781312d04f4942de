#include "server/core/events.h"

namespace reprise {

const char* ModelStateName(ModelState state) {
  switch (state) {
    case ModelState::kLoading:
      return "LOADING";
    case ModelState::kReady:
      return "READY";
    case ModelState::kUnavailable:
      break;
  }
  return "UNAVAILABLE";
}

}  // namespace reprise
