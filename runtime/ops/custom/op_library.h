// LoadOpLibrary: registers the ops of a shared library with the C interface of reprise_op.h.
//
//   ASSIGN_OR_RETURN(const std::vector<std::string> ops, LoadOpLibrary("/opt/acme/libops.so"));
//
// A library is trusted code: load libraries that the operator of the process names, never one that
// a model or a request names. It stays loaded for the life of the process.
//
// Threads: any. Errors: NOT_FOUND for a file that cannot be loaded, with the reason of the system;
// INVALID_ARGUMENT for one without the function or with ops that RegisterOp refuses;
// FAILED_PRECONDITION for one that was made for another version.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace reprise {

// Loads the library. Returns the names that were registered: "acme.Clamp01".
absl::StatusOr<std::vector<std::string>> LoadOpLibrary(const std::string& path);

}  // namespace reprise
