#include "command_line/completion.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "command_line/help.h"

namespace reprise::command_line {
namespace {

// Returns one word of a shell, whatever is in it.
std::string Quoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

// Returns the part of a meaning that a menu has room for.
std::string Short(absl::string_view meaning) {
  const size_t end = meaning.find_first_of(".;:");
  return std::string(meaning.substr(0, end));
}

bool IsSwitch(const Option& option) { return option.value.empty(); }

std::vector<std::string> FlagsOf(const Option& option) {
  std::vector<std::string> flags = {option.flag};
  if (!option.short_flag.empty()) flags.push_back(option.short_flag);
  return flags;
}

// Returns the program itself, and all of its commands.
std::vector<const Command*> Everything(const Program& program) {
  std::vector<const Command*> all = AllCommands(program.command);
  all.insert(all.begin(), &program.command);
  return all;
}

// Bash: a case over "COMMAND FLAG" for values, one over the command for words.
std::string Bash(const Program& program) {
  std::string paths, values, words;
  for (const Command* command : Everything(program)) {
    if (!command->name.empty()) {
      absl::StrAppend(&paths, paths.empty() ? "" : "|", Quoted(command->name));
    }
    std::vector<std::string> offered, takers;
    for (const Command& below : command->commands) offered.push_back(LastWordOf(below));
    for (const Option& option : command->options) {
      offered.push_back(option.flag);
      if (IsSwitch(option)) continue;
      std::vector<std::string> patterns;
      for (const std::string& flag : FlagsOf(option)) {
        patterns.push_back(Quoted(absl::StrCat(command->name, " ", flag)));
      }
      const std::string pattern = absl::StrJoin(patterns, "|");
      if (!option.choices.empty()) {
        absl::StrAppend(&values, "    ", pattern, ")\n      COMPREPLY=($(compgen -W ",
                        Quoted(absl::StrJoin(option.choices, " ")), " -- \"$cur\")); return ;;\n");
      } else if (option.kind == ValueKind::kOther) {
        takers.push_back(pattern);
      } else {
        absl::StrAppend(&values, "    ", pattern, ")\n      COMPREPLY=($(compgen -",
                        option.kind == ValueKind::kFile ? "f" : "d", " -- \"$cur\")); return ;;\n");
      }
    }
    if (!takers.empty()) {
      absl::StrAppend(&values, "    ", absl::StrJoin(takers, "|"), ")\n      return ;;\n");
    }
    for (const Option& option : command->positionals) {
      offered.insert(offered.end(), option.choices.begin(), option.choices.end());
    }
    absl::StrAppend(&words, "    ", Quoted(command->name),
                    ") words=", Quoted(absl::StrJoin(offered, " ")), " ;;\n");
  }
  const std::string function = absl::StrCat("_", absl::StrReplaceAll(program.name, {{"-", "_"}}));
  return absl::StrCat("# bash completion of ", program.name, ", made from its flags.\n", function,
                      R"sh(() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path='' words='' i
  # --flag=value is three words
  if [[ $cur == = ]]; then cur=''; elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "${path:+$path }${COMP_WORDS[i]}" in
)sh",
                      paths.empty() ? ""
                                    : absl::StrCat("      ", paths,
                                                   ") path=\"${path:+$path }"
                                                   "${COMP_WORDS[i]}\" ;;\n"),
                      R"sh(      *) ;;
    esac
  done
  case "$path $prev" in
)sh",
                      values, "  esac\n  case \"$path\" in\n", words, R"sh(  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
  [[ $cur == -* ]] || COMPREPLY+=($(compgen -f -- "$cur"))
}
complete -o filenames -F )sh",
                      function, " ", program.name, "\n");
}

// Zsh: a function for each command, which hands the rest of the line to those below it.
std::string ZshName(const Program& program, const Command& command) {
  return absl::StrCat("_", absl::StrReplaceAll(program.name, {{"-", "_"}}),
                      command.name.empty() ? "" : "_",
                      absl::StrReplaceAll(command.name, {{" ", "_"}, {"-", "_"}}));
}

std::string ZshText(absl::string_view text) {
  return absl::StrReplaceAll(text,
                             {{"[", "("}, {"]", ")"}, {":", " "}, {"'", "'\\''"}, {"\\", ""}});
}

std::string ZshAction(const Option& option) {
  if (!option.choices.empty()) return absl::StrCat("(", absl::StrJoin(option.choices, " "), ")");
  if (option.kind == ValueKind::kFile) return "_files";
  return option.kind == ValueKind::kFolder ? "_files -/" : " ";
}

std::string Zsh(const Program& program) {
  std::string functions;
  for (const Command* command : Everything(program)) {
    absl::StrAppend(&functions, ZshName(program, *command), "() {\n");
    if (!command->commands.empty()) absl::StrAppend(&functions, "  local line state\n");
    absl::StrAppend(&functions, "  _arguments -s", command->commands.empty() ? "" : " -C");
    for (const Option& option : command->options) {
      for (const std::string& flag : FlagsOf(option)) {
        absl::StrAppend(&functions, " \\\n    '", option.repeated ? "*" : "", flag, "[",
                        ZshText(Short(option.meaning)), "]",
                        IsSwitch(option)
                            ? ""
                            : absl::StrCat(":", ZshText(option.value), ":", ZshAction(option)),
                        "'");
      }
    }
    for (const Option& option : command->positionals) {
      absl::StrAppend(
          &functions, " \\\n    '", option.repeated ? "*" : "",
          option.required || option.repeated ? ":" : "::", ZshText(option.flag), ":",
          option.choices.empty() && option.kind == ValueKind::kOther ? "_files" : ZshAction(option),
          "'");
    }
    if (command->commands.empty()) {
      absl::StrAppend(&functions, "\n}\n");
      continue;
    }
    absl::StrAppend(&functions, " \\\n    '1:command:->command' '*::argument:->argument'\n",
                    "  case $state in\n    command)\n      local -a commands=(\n");
    for (const Command& below : command->commands) {
      absl::StrAppend(&functions, "        '", LastWordOf(below), ":",
                      ZshText(Short(below.summary)), "'\n");
    }
    absl::StrAppend(&functions, "      )\n      _describe command commands ;;\n    argument)\n",
                    "      case $line[1] in\n");
    for (const Command& below : command->commands) {
      absl::StrAppend(&functions, "        ", LastWordOf(below), ") ", ZshName(program, below),
                      " ;;\n");
    }
    absl::StrAppend(&functions, "      esac ;;\n  esac\n}\n");
  }
  const std::string function = ZshName(program, program.command);
  return absl::StrCat("#compdef ", program.name, "\n# zsh completion, made from the flags.\n",
                      functions, "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n  ",
                      function, " \"$@\"\nelse\n  compdef ", function, " ", program.name, "\nfi\n");
}

// Fish: a line for each command, flag and value, with the words that must have been typed.
std::string Fish(const Program& program) {
  std::string lines =
      absl::StrCat("# fish completion of ", program.name, ", made from its flags.\n");
  for (const Command* command : Everything(program)) {
    std::vector<std::string> conditions;
    for (absl::string_view word : absl::StrSplit(command->name, ' ', absl::SkipEmpty())) {
      conditions.push_back(absl::StrCat("__fish_seen_subcommand_from ", word));
    }
    const std::string seen = absl::StrJoin(conditions, "; and ");
    std::vector<std::string> names;
    for (const Command& below : command->commands) names.push_back(LastWordOf(below));
    const std::string before =
        names.empty() ? ""
                      : absl::StrCat("not __fish_seen_subcommand_from ", absl::StrJoin(names, " "));
    const std::string start = absl::StrCat("complete -c ", program.name);
    const auto condition = [](const std::string& text) {
      return text.empty() ? "" : absl::StrCat(" -n ", Quoted(text));
    };
    const std::string at_commands =
        absl::StrCat(seen, seen.empty() || before.empty() ? "" : "; and ", before);
    for (const Command& below : command->commands) {
      absl::StrAppend(&lines, start, condition(at_commands), " -f -a ", LastWordOf(below), " -d ",
                      Quoted(Short(below.summary)), "\n");
    }
    for (const Option& option : command->options) {
      absl::StrAppend(&lines, start, condition(command->name.empty() ? before : seen));
      if (!option.short_flag.empty()) absl::StrAppend(&lines, " -s ", option.short_flag.substr(1));
      if (option.flag.substr(0, 2) == "--") absl::StrAppend(&lines, " -l ", option.flag.substr(2));
      if (!option.choices.empty()) {
        absl::StrAppend(&lines, " -x -a ", Quoted(absl::StrJoin(option.choices, " ")));
      } else if (option.kind == ValueKind::kFolder) {
        absl::StrAppend(&lines, " -x -a '(__fish_complete_directories)'");
      } else if (!IsSwitch(option)) {
        absl::StrAppend(&lines, option.kind == ValueKind::kFile ? " -r" : " -x");
      }
      absl::StrAppend(&lines, " -d ", Quoted(Short(option.meaning)), "\n");
    }
    for (const Option& option : command->positionals) {
      if (option.choices.empty()) continue;
      absl::StrAppend(&lines, start, condition(seen), " -f -a ",
                      Quoted(absl::StrJoin(option.choices, " ")), "\n");
    }
  }
  return lines;
}

}  // namespace

std::string CompletionScript(const Program& program, absl::string_view shell) {
  if (shell == "zsh") return Zsh(program);
  return shell == "fish" ? Fish(program) : Bash(program);
}

}  // namespace reprise::command_line
