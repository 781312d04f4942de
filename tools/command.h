// The commands of `reprise` that run the engine, or look at files, instead of asking a server.
//
// The contract is in client/cli/command.h: each file that is named after a command adds it.
#pragma once

#include <string>

#include "client/cli/command.h"

namespace reprise::cli {

AddCommand AddAudit, AddBisect, AddChat, AddCheck, AddDiff, AddDynamicity, AddGenerate, AddGraph,
    AddPlan, AddRecompiles, AddReplay, AddRewrite;
// Add commands that print a summary of all commands of `app`; `version` is the program's, "0.1.0".
void AddCompletion(CLI::App& app, Action& action, const std::string& version);
void AddMan(CLI::App& app, Action& action, const std::string& version);

// Returns the Profiler of `bench --profile`.
ProfileAction AddProfile(CLI::App& bench, CLI::Option* profile);

// Adds the flag --max-isa; `name` has its default and gets its value, a name of kIsas.
CLI::Option* AddMaxIsa(CLI::App& command, std::string& name, const std::string& meaning);

// Adds the flag --precision in the same way; its values are kPrecisionNames.
CLI::Option* AddPrecision(CLI::App& command, std::string& name, const std::string& meaning);

}  // namespace reprise::cli
