// Parameters of a request to load a model, whatever face they come by.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace reprise {

// OK for `config`, whose value is the JSON of a ModelConfig. Errors: UNIMPLEMENTED for files that
// come with the request, INVALID_ARGUMENT for an unknown one.
inline absl::Status CheckLoadParameter(const std::string& name) {
  if (name == "config") return absl::OkStatus();
  if (absl::StartsWith(name, "file:")) {
    return absl::UnimplementedError(absl::StrCat(
        "parameter ", name, ": models are loaded from the model repository, not from a request"));
  }
  return absl::InvalidArgumentError(absl::StrCat("parameter ", name, " is not known"));
}

}  // namespace reprise
