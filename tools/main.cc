// reprise: the command line. Exit codes: 0 success, 1 failure, 2 usage.

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "client/cli/text_commands.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/nearest_name.h"
#include "tools/command.h"
#include "tools/tokenize.h"

namespace {

// The words of the command line that name commands, for error messages: "reprise bench".
std::string CommandName(const CLI::App& app) {
  std::string name = "reprise";
  for (const CLI::App* command : app.get_subcommands())
    absl::StrAppend(&name, " ", command->get_name());
  return name;
}

// "; did you mean explain?" of the first word that is nearly a command or flag of `app`, or of the
// command of it that was called.
std::string SuggestionFor(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(absl::StrCat("--", name));
  }
  for (const std::string& word : app.remaining()) {
    const std::string suggestion = reprise::DidYouMean(word.substr(0, word.find('=')), names);
    if (!suggestion.empty()) return suggestion;
  }
  for (const CLI::App* command : app.get_subcommands()) {
    if (const std::string suggestion = SuggestionFor(*command); !suggestion.empty()) {
      return suggestion;
    }
  }
  return "";
}

// The parser's error; where a flag lacks its value, which values there are.
std::string WordsOf(const CLI::App& app, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) {
    return absl::StrCat(error.what(), SuggestionFor(app));
  }
  for (const CLI::Option* option : app.get_options()) {
    if (!absl::StartsWith(error.what(), absl::StrCat(option->get_name(), ":"))) continue;
    return absl::StrCat(option->get_name(), " needs a value, ", option->get_type_name());
  }
  for (const CLI::App* command : app.get_subcommands()) return WordsOf(*command, error);
  return error.what();
}

}  // namespace

int main(int argc, char** argv) {
  // As reprised does: else Debian's Abseil looks for cycles among gRPC's locks at each of them.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  CLI::App app("Talks to a Reprise inference server.", "reprise");
  app.set_version_flag("--version", "reprise " REPRISE_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);

  reprise::cli::Action action;
  reprise::cli::AddInfer(app, action);
  reprise::cli::AddFeed(app, action);
  reprise::cli::AddBench(app, action, reprise::cli::AddProfile);
  reprise::cli::AddRecipes(app, action);
  reprise::cli::AddDump(app, action);
  reprise::cli::AddStats(app, action);
  reprise::cli::AddPlan(app, action);
  reprise::cli::AddDynamicity(app, action);
  reprise::cli::AddExplain(app, action);
  reprise::cli::AddWarmup(app, action);
  reprise::cli::AddHealth(app, action);
  reprise::cli::AddCheck(app, action);
  reprise::cli::AddDemo(app, action);
  reprise::cli::AddStore(app, action);
  reprise::cli::AddGenerate(app, action);
  reprise::cli::AddChat(app, action);
  reprise::cli::AddGraph(app, action);
  reprise::cli::AddReplay(app, action);
  reprise::cli::AddDiff(app, action);
  reprise::cli::AddRecompiles(app, action);
  reprise::cli::AddRewrite(app, action);
  reprise::cli::AddEmbed(app, action);
  reprise::cli::AddRerank(app, action);
  reprise::cli::AddTokenize(app, action);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    const std::string name = CommandName(app);
    std::fprintf(stderr, "%s: %s (see %s --help)\n", name.c_str(), WordsOf(app, error).c_str(),
                 name.c_str());
    return 2;
  }

  const absl::Status status = reprise::WithinMemory([] { return "the command"; }, action);
  if (status.ok()) return 0;
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s: %s\n", CommandName(app).c_str(),
               absl::StatusCodeToString(status.code()).c_str(),
               std::string(status.message()).c_str());
  return 1;
}
