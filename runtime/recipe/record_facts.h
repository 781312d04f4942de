// The facts that a record of a recipe store states: for people, and for tools that move records
// between machines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/recipe/record_file.h"
#include "runtime/recipe/record_name.h"

namespace reprise {

struct RecordFacts {
  RecordKind kind = RecordKind::kRecipe;
  std::string model;  // the model that had it stored
  int64_t version = 0;
  std::string bucket;    // a recipe's bucket
  std::string device;    // the one it holds for; empty: any
  std::string compiler;  // the one that made it; empty: any
  int64_t rebuild_ns = 0;
  int64_t created_unix_s = 0;
};

// Returns the facts of a file's bytes. DATA_LOSS or FAILED_PRECONDITION as DecodeRecord says,
// DATA_LOSS too where the payload is no message of its kind or the file has the name of another
// record.
absl::StatusOr<RecordFacts> FactsOf(absl::string_view bytes, const RecordName& name);

// Returns why a record cannot be used on `device` by the compiler of this build; OK if it can.
absl::Status UsableOn(const RecordFacts& facts, const std::string& device);

// Records in one file, checksummed as a whole, to be carried to another machine.
struct BundledRecord {
  std::string file;   // RecordName::file()
  std::string bytes;  // the whole file
};
std::string EncodeBundle(const std::vector<BundledRecord>& records);
// Returns DATA_LOSS or FAILED_PRECONDITION where the bytes are no intact bundle of this format.
absl::StatusOr<std::vector<BundledRecord>> DecodeBundle(absl::string_view bytes);

}  // namespace reprise
