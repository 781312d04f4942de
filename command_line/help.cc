#include "command_line/help.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "command_line/text_width.h"

namespace reprise::command_line {
namespace {

constexpr size_t kMostLabel = 32;  // columns; a longer label has a line of its own

struct Row {
  std::string label, text;
};

void AppendRows(const std::string& title, const std::vector<Row>& rows, size_t width,
                std::string& help) {
  if (rows.empty()) return;
  size_t column = 0;
  for (const Row& row : rows) {
    if (const size_t size = WidthOf(row.label); size <= kMostLabel) column = std::max(column, size);
  }
  column += 4;
  absl::StrAppend(&help, "\n", title, ":\n");
  for (const Row& row : rows) {
    const size_t size = WidthOf(row.label);
    absl::StrAppend(&help, "  ", row.label);
    if (size + 4 > column) {
      absl::StrAppend(&help, "\n", std::string(column, ' '));
    } else {
      absl::StrAppend(&help, std::string(column - size - 2, ' '));
    }
    absl::StrAppend(&help, Wrap(row.text, width, column, column), "\n");
  }
}

Row RowOf(const Option& option) {
  const std::string notes = NotesOf(option);
  return {LabelOf(option),
          notes.empty() ? option.meaning : absl::StrCat(option.meaning, " (", notes, ")")};
}

// Appends the rows of each group, in the order in which groups first come.
template <typename Items, typename MakeRow>
void AppendGroups(const Items& items, MakeRow make_row, size_t width, std::string& help) {
  std::vector<std::string> groups;
  for (const auto& item : items) {
    if (std::find(groups.begin(), groups.end(), item.group) == groups.end()) {
      groups.push_back(item.group);
    }
  }
  // The flags that every program has come last.
  std::stable_partition(groups.begin(), groups.end(),
                        [](const std::string& group) { return group != "Options"; });
  for (const std::string& group : groups) {
    std::vector<Row> rows;
    for (const auto& item : items) {
      if (item.group == group) rows.push_back(make_row(item));
    }
    AppendRows(group, rows, width, help);
  }
}

}  // namespace

std::string LastWordOf(const Command& command) {
  const size_t space = command.name.find_last_of(' ');
  return space == std::string::npos ? command.name : command.name.substr(space + 1);
}

std::string NotesOf(const Option& option) {
  std::vector<std::string> notes;
  const std::string choices = absl::StrJoin(option.choices, "|");
  if (!choices.empty() && option.value != choices) notes.push_back(choices);
  if (!option.default_value.empty()) notes.push_back("default " + option.default_value);
  if (!option.bounds.empty()) notes.push_back(option.bounds);
  if (option.repeated && option.flag[0] == '-') notes.push_back("may be given more than once");
  if (option.required && option.flag[0] == '-') notes.push_back("required");
  if (!option.environment.empty()) notes.push_back("$" + option.environment);
  return absl::StrJoin(notes, "; ");
}

std::string LabelOf(const Option& option) {
  if (option.flag[0] != '-') return absl::AsciiStrToUpper(option.flag);
  return absl::StrCat(option.short_flag, option.short_flag.empty() ? "" : ", ", option.flag,
                      option.value.empty() ? "" : " ", option.value);
}

std::string UsageOf(const Program& program, const Command& command) {
  std::string usage = program.name;
  if (!command.name.empty()) absl::StrAppend(&usage, " ", command.name);
  absl::StrAppend(&usage, " [OPTIONS]");
  if (!command.commands.empty()) absl::StrAppend(&usage, " COMMAND");
  for (const Option& one : command.positionals) {
    absl::StrAppend(&usage, " ", one.required ? "" : "[", LabelOf(one), one.repeated ? "..." : "",
                    one.required ? "" : "]");
  }
  return usage;
}

std::string HelpText(const Program& program, const Command& command, size_t width) {
  std::string help = absl::StrCat("Usage: ", UsageOf(program, command), "\n\n",
                                  Wrap(command.summary, width, 0, 0), "\n");
  AppendGroups(
      command.commands,
      [](const Command& below) {
        return Row{LastWordOf(below), below.summary};
      },
      width, help);
  std::vector<Row> positionals;
  for (const Option& option : command.positionals) positionals.push_back(RowOf(option));
  AppendRows("Arguments", positionals, width, help);
  AppendGroups(command.options, RowOf, width, help);
  if (!command.notes.empty()) absl::StrAppend(&help, "\n", Wrap(command.notes, width, 0, 0), "\n");
  if (!command.examples.empty()) {
    absl::StrAppend(&help, "\nExamples:\n");
    for (const std::string& example : command.examples) absl::StrAppend(&help, "  ", example, "\n");
  }
  if (!command.commands.empty()) {
    absl::StrAppend(&help, "\n", program.name, command.name.empty() ? "" : " ", command.name,
                    " COMMAND --help lists the flags of a command.\n");
  }
  return help;
}

}  // namespace reprise::command_line
