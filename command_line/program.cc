#include "command_line/program.h"

#include <CLI/CLI.hpp>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace reprise::command_line {
namespace {

const std::string kExamples = "Examples:\n";

// Splits the parser's words for a value, "N:INT in [0 - 65535]" or "ISA:{baseline,avx2}", into its
// name and its check. The name may have a colon itself: "HOST:PORT".
std::pair<std::string, std::string> SplitType(const std::string& type) {
  const size_t colon = type.find_last_of(':');
  const std::string check = colon == std::string::npos ? type : type.substr(colon + 1);
  const bool is_check = check[0] == '{' || absl::StrContains(check, " in [") || check == "FILE" ||
                        check == "DIR" || check == "POSITIVE" || check == "NONNEGATIVE";
  if (!is_check) return {type, ""};
  return {colon == std::string::npos ? check : type.substr(0, colon), check};
}

void ReadValue(const std::string& type, Option& option) {
  std::string check;
  std::tie(option.value, check) = SplitType(type);
  if (absl::StartsWith(check, "{")) {
    const std::string inner = check.substr(1, check.size() - 2);
    option.choices = absl::StrSplit(inner, ',');
    if (option.value == check) option.value = absl::StrReplaceAll(inner, {{",", "|"}});
  } else if (const size_t in = check.find(" in ["); in != std::string::npos) {
    option.bounds =
        absl::StrReplaceAll(check.substr(in + 5, check.size() - in - 6), {{" - ", " to "}});
    // The largest number of a type is no bound that anyone chose.
    for (const char* limit : {" to 2147483647", " to 9223372036854775807"}) {
      if (!absl::EndsWith(option.bounds, limit)) continue;
      option.bounds = absl::StrCat("at least ", absl::StripSuffix(option.bounds, limit));
    }
  } else if (check == "POSITIVE") {
    option.bounds = "above 0";
  } else if (check == "NONNEGATIVE") {
    option.bounds = "at least 0";
  }
}

ValueKind KindOf(const std::string& type) {
  if (absl::StrContains(type, "DIR") || absl::StrContains(type, "FOLDER"))
    return ValueKind::kFolder;
  const bool file = absl::StrContains(type, "FILE") || absl::StrContains(type, "PATH") ||
                    absl::StrContains(type, ".onnx");
  return file ? ValueKind::kFile : ValueKind::kOther;
}

Option DescribeOption(const CLI::Option& option) {
  Option result{.meaning = option.get_description(),
                .default_value = option.get_default_str(),
                .environment = option.get_envname(),
                .required = option.get_required(),
                .repeated = option.get_items_expected_max() > 1,
                .group = option.get_group()};
  if (option.get_positional()) {
    result.flag = option.get_name(true);
  } else if (!option.get_lnames().empty()) {
    result.flag = absl::StrCat("--", option.get_lnames()[0]);
  }
  if (!option.get_snames().empty()) result.short_flag = absl::StrCat("-", option.get_snames()[0]);
  if (option.get_items_expected_max() > 0) {
    const std::string type = option.get_type_name();
    result.kind = KindOf(type);
    ReadValue(type, result);
  }
  return result;
}

Command DescribeCommand(const CLI::App& app, const std::string& name) {
  Command command{.name = name, .summary = app.get_description(), .group = app.get_group()};
  const std::string footer = app.get_footer();
  const size_t at = footer.find(kExamples);
  command.notes = std::string(absl::StripTrailingAsciiWhitespace(footer.substr(0, at)));
  if (at != std::string::npos) {
    for (absl::string_view line :
         absl::StrSplit(footer.substr(at + kExamples.size()), '\n', absl::SkipWhitespace())) {
      command.examples.emplace_back(absl::StripAsciiWhitespace(line));
    }
  }
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    (option->get_positional() ? command.positionals : command.options)
        .push_back(DescribeOption(*option));
  }
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; })) {
    const std::string separator = name.empty() ? "" : " ";
    command.commands.push_back(
        DescribeCommand(*below, absl::StrCat(name, separator, below->get_name())));
  }
  return command;
}

}  // namespace

Program Describe(const CLI::App& app, const std::string& version) {
  return {.name = app.get_name(), .version = version, .command = DescribeCommand(app, "")};
}

std::vector<const Command*> AllCommands(const Command& command) {
  std::vector<const Command*> all;
  for (const Command& below : command.commands) {
    all.push_back(&below);
    for (const Command* deeper : AllCommands(below)) all.push_back(deeper);
  }
  return all;
}

}  // namespace reprise::command_line
