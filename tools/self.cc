// reprise completion, reprise man: descriptions of the command line itself.

#include <cstdio>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "command_line/completion.h"
#include "command_line/manual.h"
#include "command_line/program.h"
#include "runtime/base/nearest_name.h"
#include "tools/command.h"

namespace reprise::cli {
namespace {

absl::Status PrintManual(const command_line::Program& program, const std::string& name) {
  std::vector<std::string> names;
  for (const command_line::Command* command : command_line::AllCommands(program.command)) {
    if (command->name == name) {
      std::fputs(command_line::ManualPage(program, *command).c_str(), stdout);
      return absl::OkStatus();
    }
    names.push_back(command->name);
  }
  if (!name.empty()) {
    return absl::NotFoundError(
        absl::StrCat("there is no command '", name, "'", DidYouMean(name, names)));
  }
  std::fputs(command_line::ManualPage(program).c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

void AddCompletion(CLI::App& app, Action& action, const std::string& version) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print the completion script of a shell");
  command->add_option("shell", *shell, "Shell to complete in")
      ->required()
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(command_line::kShells),
                                                     std::end(command_line::kShells))));
  command->callback([&app, shell, version, &action] {
    action = [&app, shell, version] {
      std::fputs(
          command_line::CompletionScript(command_line::Describe(app, version), *shell).c_str(),
          stdout);
      return absl::OkStatus();
    };
  });
}

void AddMan(CLI::App& app, Action& action, const std::string& version) {
  auto name = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("man", "Print the manual page of the program, or of a command");
  AddOption(*command, "command", *name, "COMMAND", "Command; without one, all of them");
  command->callback([&app, name, version, &action] {
    action = [&app, name, version] {
      return PrintManual(command_line::Describe(app, version), *name);
    };
  });
}

}  // namespace reprise::cli
