#include "server/requests/key_limits.h"

#include "runtime/base/status_macros.h"

namespace reprise {

absl::Status CountAgainstKey(const InferRequest& asked, RequestState& state) {
  if (asked.key == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(state.ticket, asked.key->Begin(state.start_ns));
  return absl::OkStatus();
}

}  // namespace reprise
