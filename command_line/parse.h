// Parses a command line, or explains in one line why it is wrong.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace CLI {
class App;
}  // namespace CLI

namespace reprise::command_line {

struct Parsed {
  std::string command;  // "store list"; "" for the program itself
  std::string answer;   // not empty: --help or --version asked for this text, nothing else to do
};

// Returns the words of the command line that named commands; right after a mistake, too.
std::string CalledCommand(const CLI::App& app);

// Errors: INVALID_ARGUMENT with one line that names the flag and the value, and the flag or command
// that was probably meant.
absl::StatusOr<Parsed> Parse(CLI::App& app, const std::string& version, int argc,
                             const char* const* argv);

}  // namespace reprise::command_line
