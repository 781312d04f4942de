// The text of --help, in groups, within the terminal.
#pragma once

#include <cstddef>
#include <string>

#include "command_line/program.h"

namespace reprise::command_line {

// Returns the help of `command`, which is the program's or one in it, in lines of up to `width`
// columns.
std::string HelpText(const Program& program, const Command& command, size_t width);

// Returns the notes after a flag's meaning: "default 8001; 0 to 65535; $REPRISED_HTTP_PORT"; ""
// where there are none.
std::string NotesOf(const Option& option);

// Returns "-s, --server HOST:PORT", or a positional's name in capitals.
std::string LabelOf(const Option& option);

// Returns "reprise infer [OPTIONS] MODEL".
std::string UsageOf(const Program& program, const Command& command);

// Returns the last word of its name: "list" of "store list".
std::string LastWordOf(const Command& command);

}  // namespace reprise::command_line
