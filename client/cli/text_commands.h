// The commands that send texts to a server: see command.h for their contract.
#pragma once

#include "client/cli/command.h"

namespace reprise::cli {

void AddEmbed(CLI::App& app, Action& action);
void AddRerank(CLI::App& app, Action& action);

}  // namespace reprise::cli
