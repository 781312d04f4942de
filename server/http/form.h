// ReadForm: the parts of a body of multipart/form-data (RFC 7578).
//
//   ASSIGN_OR_RETURN(const std::vector<FormPart> parts, ReadForm(request.Field("content-type"),
//   request.body));
//
// Errors: INVALID_ARGUMENT if it is no such body. Memory: the parts are views of the body.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace reprise {

struct FormPart {
  std::string name;
  std::string file_name;  // empty: the part is no file
  absl::string_view data;
};

absl::StatusOr<std::vector<FormPart>> ReadForm(absl::string_view content_type,
                                               absl::string_view body);

}  // namespace reprise
