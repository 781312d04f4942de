// Completion scripts for shells.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "command_line/program.h"

namespace reprise::command_line {

inline constexpr const char* kShells[] = {"bash", "zsh", "fish"};

// Returns the script that completes the program's commands, flags, values and files in `shell`, one
// of kShells.
std::string CompletionScript(const Program& program, absl::string_view shell);

}  // namespace reprise::command_line
