// THE schemas of the bodies and answers of routes that take no texts, and of errors.
#pragma once

#include "absl/strings/string_view.h"

namespace reprise {

// Returns a JSON object by name.
absl::string_view OtherSchemas();

}  // namespace reprise
