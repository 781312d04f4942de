// A size for each of some axes, as people write it: "batch=1,sequence=16000".
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/bucket/policy.h"

namespace reprise {

// Returns the sizes. INVALID_ARGUMENT names any text that is no AXIS=SIZE, and an axis that has two
// sizes. Sizes are from 1 on.
absl::StatusOr<AxisSizes> ParseAxisSizes(absl::string_view text);

}  // namespace reprise
