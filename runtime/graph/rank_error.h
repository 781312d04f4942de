// RankError: INVALID_ARGUMENT because of a number of dims. Sizes differ from request to request,
// ranks do not: a model that meets such an error at load meets it in every request.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace reprise {

absl::Status RankError(absl::string_view message);
bool IsRankError(const absl::Status& status);

// Returns `status` with another message; it stays a rank error if it is one.
absl::Status WithMessage(const absl::Status& status, absl::string_view message);

}  // namespace reprise
