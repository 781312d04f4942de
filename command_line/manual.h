// Manual pages, in the language of man(7).
#pragma once

#include <string>

#include "command_line/program.h"

namespace reprise::command_line {

// Returns the page of the whole program, NAME(1), with a section for each command.
std::string ManualPage(const Program& program);

// Returns the page of one command of it, NAME-COMMAND(1).
std::string ManualPage(const Program& program, const Command& command);

}  // namespace reprise::command_line
