// Pictures in JSON, and the model that they are for.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/pictures/picture_model.h"
#include "server/repository/repository.h"

namespace reprise {

// Returns the bytes of a picture's file: "data:image/png;base64,...", or base64 alone. Errors:
// INVALID_ARGUMENT for anything else, which names the member `name`.
absl::StatusOr<std::string> PictureFileOf(absl::string_view text, absl::string_view name);

// Fills `model`, where it is empty, with the only one that offers the task. Errors:
// FAILED_PRECONDITION where it offers something else, or none does; INVALID_ARGUMENT naming
// several.
absl::Status ChoosePictureModel(const Repository& repository, PictureTask task, std::string& model);

}  // namespace reprise
