#include "command_line/parse.h"

#include <CLI/CLI.hpp>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "command_line/help.h"
#include "command_line/program.h"
#include "command_line/text_width.h"
#include "runtime/base/nearest_name.h"

namespace reprise::command_line {
namespace {

// Lines of --help where no terminal says how long they may be.
constexpr size_t kHelpWidth = 100;

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
    const std::string suggestion = DidYouMean(word.substr(0, word.find('=')), names);
    if (!suggestion.empty()) return suggestion;
  }
  for (const CLI::App* command : app.get_subcommands()) {
    if (const std::string suggestion = SuggestionFor(*command); !suggestion.empty()) {
      return suggestion;
    }
  }
  return "";
}

// Returns the parser's error; where a flag lacks its value, which values there are.
std::string WordsOf(const CLI::App& app, const CLI::ParseError& error) {
  const std::string words = absl::StrReplaceAll(error.what(), {{"\n", " "}});
  const bool no_command = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr &&
                          app.get_subcommands().empty() && app.get_require_subcommand_min() > 0;
  if (no_command && !app.remaining().empty()) {
    return absl::StrCat("there is no command '", app.remaining()[0], "'", SuggestionFor(app));
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) {
    return absl::StrCat(words, SuggestionFor(app));
  }
  for (const CLI::Option* option : app.get_options()) {
    if (!absl::StartsWith(words, absl::StrCat(option->get_name(), ":"))) continue;
    return absl::StrCat(option->get_name(), " needs a value, ", option->get_type_name());
  }
  for (const CLI::App* command : app.get_subcommands()) return WordsOf(*command, error);
  return words;
}

std::string HelpOf(const CLI::App& app, const std::string& version) {
  const Program program = Describe(app, version);
  const std::string called = CalledCommand(app);
  const size_t width = TerminalWidth(kHelpWidth);
  for (const Command* command : AllCommands(program.command)) {
    if (command->name == called) return HelpText(program, *command, width);
  }
  return HelpText(program, program.command, width);
}

void DescribeHelp(CLI::App& app) {
  if (CLI::Option* help = app.get_help_ptr()) help->description("Print this help and exit");
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    DescribeHelp(*command);
  }
}

}  // namespace

std::string CalledCommand(const CLI::App& app) {
  std::string words;
  for (const CLI::App* command : app.get_subcommands()) {
    words = command->get_name();
    const std::string below = CalledCommand(*command);
    if (!below.empty()) absl::StrAppend(&words, " ", below);
  }
  return words;
}

absl::StatusOr<Parsed> Parse(CLI::App& app, const std::string& version, int argc,
                             const char* const* argv) {
  const std::string name_and_version = absl::StrCat(app.get_name(), " ", version);
  app.set_version_flag("--version", name_and_version, "Print the version and exit");
  DescribeHelp(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return Parsed{.command = CalledCommand(app), .answer = HelpOf(app, version)};
  } catch (const CLI::CallForVersion&) {
    return Parsed{.answer = absl::StrCat(name_and_version, "\n")};
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(WordsOf(app, error));
  }
  return Parsed{.command = CalledCommand(app)};
}

}  // namespace reprise::command_line
