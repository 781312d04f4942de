// The commands that get and serve a model: see client/cli/command.h for their contract.
#pragma once

#include "client/cli/command.h"

namespace reprise::cli {

void AddCompile(CLI::App& app, Action& action);
void AddMerge(CLI::App& app, Action& action);
void AddPull(CLI::App& app, Action& action);
void AddRun(CLI::App& app, Action& action);
void AddStore(CLI::App& app, Action& action);

}  // namespace reprise::cli
