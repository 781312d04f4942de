#include "command_line/manual.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "command_line/help.h"

namespace reprise::command_line {
namespace {

// Returns a text for printing: roff reads backslashes, and dots and quotes that begin a line.
std::string Escaped(absl::string_view text) {
  std::string escaped = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}, {"\n", " "}});
  if (!escaped.empty() && (escaped[0] == '.' || escaped[0] == '\'')) escaped.insert(0, "\\&");
  return escaped;
}

// Returns an argument of a macro, in quotes.
std::string Argument(absl::string_view text) {
  return absl::StrCat("\"", absl::StrReplaceAll(Escaped(text), {{"\"", "\\(dq"}}), "\"");
}

void AppendOption(const Option& option, std::string& page) {
  std::string label;
  if (option.flag[0] != '-') {
    label = absl::StrCat("\\fI", Escaped(absl::AsciiStrToUpper(option.flag)), "\\fR");
  } else {
    if (!option.short_flag.empty()) {
      absl::StrAppend(&label, "\\fB", Escaped(option.short_flag), "\\fR, ");
    }
    absl::StrAppend(&label, "\\fB", Escaped(option.flag), "\\fR");
    if (!option.value.empty()) absl::StrAppend(&label, " \\fI", Escaped(option.value), "\\fR");
  }
  const std::string notes = NotesOf(option);
  absl::StrAppend(
      &page, ".TP\n", label, "\n",
      Escaped(notes.empty() ? option.meaning : absl::StrCat(option.meaning, " (", notes, ")")),
      "\n");
}

void AppendOptions(const Command& command, bool headings, std::string& page) {
  for (const Option& option : command.positionals) AppendOption(option, page);
  std::vector<std::string> groups;
  for (const Option& option : command.options) {
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) {
      groups.push_back(option.group);
    }
  }
  for (const std::string& group : groups) {
    if (headings && groups.size() > 1) absl::StrAppend(&page, ".SS ", Argument(group), "\n");
    for (const Option& option : command.options) {
      if (option.group == group) AppendOption(option, page);
    }
  }
}

void AppendNotes(const Command& command, std::string& page) {
  if (!command.notes.empty()) absl::StrAppend(&page, ".PP\n", Escaped(command.notes), "\n");
}

void AppendExamples(const Command& command, std::string& page) {
  if (command.examples.empty()) return;
  absl::StrAppend(&page, ".PP\n.nf\n");
  for (const std::string& example : command.examples) {
    absl::StrAppend(&page, Escaped(example), "\n");
  }
  absl::StrAppend(&page, ".fi\n");
}

std::string Head(const Program& program, const std::string& name, const std::string& summary) {
  return absl::StrCat(".TH ", Argument(absl::AsciiStrToUpper(name)), " 1 \"\" ",
                      Argument(absl::StrCat("Reprise ", program.version)), " \"Reprise\"\n",
                      ".SH NAME\n", Escaped(name), " \\- ", Escaped(summary), "\n");
}

void AppendSynopsis(const Program& program, const Command& command, std::string& page) {
  absl::StrAppend(&page, ".SH SYNOPSIS\n\\fB", Escaped(UsageOf(program, command)), "\\fR\n");
}

constexpr char kExitStatus[] =
    ".SH EXIT STATUS\n0 for success, 1 for a failure, 2 for wrong usage; the last two with one "
    "line on stderr.\n";

}  // namespace

std::string ManualPage(const Program& program) {
  const Command& top = program.command;
  std::string page = Head(program, program.name, top.summary);
  AppendSynopsis(program, top, page);
  if (!top.notes.empty() || !top.examples.empty()) absl::StrAppend(&page, ".SH DESCRIPTION\n");
  AppendNotes(top, page);
  AppendExamples(top, page);
  absl::StrAppend(&page, ".SH OPTIONS\n");
  AppendOptions(top, /*headings=*/true, page);
  if (!top.commands.empty()) absl::StrAppend(&page, ".SH COMMANDS\n");
  for (const Command* command : AllCommands(top)) {
    absl::StrAppend(&page, ".SS ", Argument(UsageOf(program, *command)), "\n",
                    Escaped(command->summary), "\n");
    AppendOptions(*command, /*headings=*/false, page);
    AppendNotes(*command, page);
    AppendExamples(*command, page);
  }
  return absl::StrCat(page, kExitStatus);
}

std::string ManualPage(const Program& program, const Command& command) {
  const std::string name = absl::StrCat(program.name, " ", command.name);
  std::string page = Head(program, absl::StrReplaceAll(name, {{" ", "-"}}), command.summary);
  AppendSynopsis(program, command, page);
  if (!command.notes.empty()) absl::StrAppend(&page, ".SH DESCRIPTION\n");
  AppendNotes(command, page);
  absl::StrAppend(&page, ".SH OPTIONS\n");
  AppendOptions(command, /*headings=*/true, page);
  if (!command.examples.empty()) absl::StrAppend(&page, ".SH EXAMPLES\n");
  AppendExamples(command, page);
  absl::StrAppend(&page, kExitStatus, ".SH SEE ALSO\n\\fB", Escaped(program.name), "\\fR(1)\n");
  return page;
}

}  // namespace reprise::command_line
