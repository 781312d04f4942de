// The commands that get and serve a model: see client/cli/command.h for their contract.
#pragma once

#include "client/cli/command.h"

namespace reprise::cli {

AddCommand AddCompile, AddMerge, AddPull, AddRun, AddStore;

}  // namespace reprise::cli
