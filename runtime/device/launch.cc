#include "runtime/device/launch.h"

namespace reprise {

absl::string_view SpaceName(Space space) {
  switch (space) {
    case Space::kNone:
      return "none";
    case Space::kArena:
      return "arena";
    case Space::kParameter:
      return "parameter";
    case Space::kConstant:
      return "constant";
    case Space::kInput:
      return "input";
    case Space::kOutput:
      return "output";
  }
  return "none";
}

}  // namespace reprise
