#include "server/repository/events.h"

namespace reprise {

const char* ModelStateName(ModelState state) {
  switch (state) {
    case ModelState::kLoading:
      return "LOADING";
    case ModelState::kReady:
      return "READY";
    case ModelState::kUnavailable:
    case ModelState::kUnloaded:
      break;
  }
  return "UNAVAILABLE";
}

}  // namespace reprise
