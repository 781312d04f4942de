// reprise tokenize: see command.h for its contract.
#pragma once

#include "tools/command.h"

namespace reprise::cli {

void AddTokenize(CLI::App& app, Action& action);

}  // namespace reprise::cli
