// ContextOverflow: that a prompt is longer than the context of its model, told apart from other
// errors of the request since clients shorten the prompt then.
//
// Threads: any.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace reprise {

inline constexpr char kContextOverflowPayload[] = "reprise/context_overflow";

// Returns INVALID_ARGUMENT with `message`.
inline absl::Status ContextOverflow(absl::string_view message) {
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kContextOverflowPayload, absl::Cord());
  return status;
}

inline bool IsContextOverflow(const absl::Status& status) {
  return status.GetPayload(kContextOverflowPayload).has_value();
}

}  // namespace reprise
