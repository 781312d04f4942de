// The command line of `reprised`. Flags of Triton have the same meaning as there.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/config/options.h"

namespace reprise {

// One flag as people see it.
struct FlagInfo {
  std::string name;           // "--grpc-port"
  std::string value;          // "PORT"
  std::string default_value;  // shown to users; "" where there is none
  std::string meaning;
};

// Returns every flag, in the order of --help: the documentation is made from this table.
std::vector<FlagInfo> FlagTable();

struct ParsedFlags {
  // Models that are named by themselves are in `model_repositories`, as NAME=PATH or NAME=URL.
  Options options;
  // Sentences of environment variables that are called as flags would be, and name none.
  std::vector<std::string> unknown_variables;
  std::string answer;  // not empty: --help or --version asked for this text, nothing else to do
};

// Errors: INVALID_ARGUMENT with one line that names the flag and the value.
absl::StatusOr<ParsedFlags> ParseFlags(int argc, const char* const* argv,
                                       absl::string_view version);

}  // namespace reprise
