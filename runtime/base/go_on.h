// GoesOn: how long-running work asks whether it is still wanted.
//
// Threads: the one that hands in the question says from which threads it may be asked.
#pragma once

#include <functional>

#include "absl/status/status.h"

namespace reprise {

// Asks `go_on`: OK, or the error that the work is to end with. Null: it goes on to its end.
inline absl::Status GoesOn(const std::function<absl::Status()>& go_on) {
  return go_on == nullptr ? absl::OkStatus() : go_on();
}

}  // namespace reprise
