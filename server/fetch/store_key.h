// StoreKey: the secret of --store-key, which the records of a recipe store are signed with.
//
// Threads: any.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "runtime/recipe/record_file.h"

namespace reprise {

// Returns the HMAC-SHA256 by the key in the file `path`: all of its bytes but for white space at
// its end. Empty: null, records have no MAC. Errors: those of reading the file; INVALID_ARGUMENT
// for a key of fewer than 16 bytes.
absl::StatusOr<RecordMac> ReadStoreKey(const std::string& path);

}  // namespace reprise
