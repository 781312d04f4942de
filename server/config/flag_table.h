// THE table of the flags of `reprised`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "server/config/options.h"

namespace reprise {

// The values of the command line: the options, and the rest, which is folded into them once it is
// read.
struct FlagTarget : Options {
  std::vector<std::string> models;
  std::string config;  // the file of further flags, which is read by now
  bool print_config = false;
  bool manual = false;
  std::string completion;  // the shell
};

struct Flag {
  const char* name;
  const char* value;
  const char* default_value;
  const char* meaning;
  CLI::Option* (*add)(CLI::App& app, const Flag& flag, FlagTarget& target);
};

// Returns the rows in the order of --help.
absl::Span<const Flag> FlagRows();

// Returns the heading of --help above `flag`; nullptr where it has the one of the flag before.
const char* GroupFrom(const char* flag);

}  // namespace reprise
