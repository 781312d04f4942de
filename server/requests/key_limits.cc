#include "server/requests/key_limits.h"

#include "runtime/base/status_macros.h"

namespace reprise {

absl::Status CountAgainstKey(const InferRequest& asked, RequestState& state) {
  if (asked.counted != nullptr) state.ticket = asked.counted;
  if (asked.is_counted || asked.counted != nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(state.ticket, KeyUse::BeginFor(asked.key, state.start_ns));
  return absl::OkStatus();
}

}  // namespace reprise
