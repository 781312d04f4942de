// Program: the command line of a program as data: its commands, their flags, values and defaults.
//
// One description is read from the parser (CLI11), which holds the table that flags are parsed by;
// help, manual pages and completion scripts are all made from it.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace reprise::command_line {

// The kind of value that a shell can complete.
enum class ValueKind { kOther, kFile, kFolder };

struct Option {
  std::string flag;        // "--server"; of a positional its name, "model"
  std::string short_flag;  // "-s", or ""
  std::string value;       // "HOST:PORT"; "" for a switch
  std::string meaning;
  std::string default_value;
  std::string environment;           // the variable that counts where the flag is not given
  std::vector<std::string> choices;  // the only values, where there are few
  std::string bounds;                // "0 to 65535"
  ValueKind kind = ValueKind::kOther;
  bool required = false;
  bool repeated = false;
  std::string group;  // the heading of help that it stands under
};

struct Command {
  std::string name;  // "store list": the words after the program's name; "" for the program
  std::string summary;
  std::string group;
  std::string notes;                  // paragraphs
  std::vector<std::string> examples;  // lines of a shell
  std::vector<Option> positionals;
  std::vector<Option> options;
  std::vector<Command> commands;
};

struct Program {
  std::string name;
  std::string version;
  Command command;  // holds all others
};

// Describes a parser whose flags are registered. A line "Examples:" in a footer divides notes from
// examples, one a line.
Program Describe(const CLI::App& app, const std::string& version);

// Returns the commands of `command` and those below them, depth first, without `command`.
std::vector<const Command*> AllCommands(const Command& command);

}  // namespace reprise::command_line
