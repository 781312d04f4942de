#include "command_line/settings.h"

#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/nearest_name.h"
#include "runtime/base/status_macros.h"

namespace reprise::command_line {
namespace {

constexpr char kConfigFlag[] = "--config";

struct KnownFlag {
  std::string name;  // "--http-port"
  bool is_switch = false;
  bool is_list = false;
};

std::vector<KnownFlag> KnownFlags(const CLI::App& app) {
  std::vector<KnownFlag> flags;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty() || !option->get_configurable()) continue;
    flags.push_back({.name = absl::StrCat("--", option->get_lnames()[0]),
                     .is_switch = option->get_items_expected_max() == 0,
                     .is_list = option->get_items_expected_max() > 1});
  }
  return flags;
}

std::string VariableOf(const std::string& prefix, const std::string& flag) {
  return absl::StrCat(prefix, absl::AsciiStrToUpper(absl::StrReplaceAll(
                                  absl::StripPrefix(flag, "--"), {{"-", "_"}})));
}

// Adds a value as words of a command line.
absl::Status AddWords(const KnownFlag& flag, const std::vector<std::string>& values,
                      const std::string& origin, std::vector<std::string>& words) {
  for (const std::string& value : values) {
    if (!flag.is_switch) {
      words.push_back(absl::StrCat(flag.name, "=", value));
    } else if (value == "true" || value == "1" || value == "yes" || value == "on") {
      words.push_back(flag.name);
    } else if (!value.empty() && value != "false" && value != "0" && value != "no" &&
               value != "off") {
      return absl::InvalidArgumentError(
          absl::StrCat(origin, ": ", flag.name, " is '", value, "', it must be true or false"));
    }
  }
  return absl::OkStatus();
}

// Returns the flags that the command line has.
std::set<std::string> Given(int argc, const char* const* argv) {
  std::set<std::string> given;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (absl::StartsWith(word, "--")) given.insert(word.substr(0, word.find('=')));
  }
  return given;
}

// Returns the file of --config, or of its variable; "" without either.
std::string ConfigFile(const std::string& prefix, int argc, const char* const* argv) {
  std::string file;
  if (const char* named = std::getenv(VariableOf(prefix, kConfigFlag).c_str())) file = named;
  for (int i = 1; i < argc; ++i) {
    absl::string_view word = argv[i];
    if (word == kConfigFlag && i + 1 < argc) file = argv[i + 1];
    if (absl::ConsumePrefix(&word, absl::StrCat(kConfigFlag, "="))) file = std::string(word);
  }
  return file;
}

absl::StatusOr<std::vector<std::string>> ValuesOf(const YAML::Node& node, const KnownFlag& flag,
                                                  const std::string& place) {
  std::vector<std::string> values;
  if (node.IsScalar()) {
    values.push_back(node.Scalar());
  } else if (node.IsSequence() && flag.is_list) {
    for (const YAML::Node& one : node) {
      if (!one.IsScalar()) {
        return absl::InvalidArgumentError(
            absl::StrCat(place, " has a list with elements that are not texts"));
      }
      values.push_back(one.Scalar());
    }
  } else if (node.IsMap() && flag.is_list) {  // model: {minilm: /models/minilm}
    for (const auto& one : node) {
      if (!one.second.IsScalar()) {
        return absl::InvalidArgumentError(
            absl::StrCat(place, " has a list with elements that are not texts"));
      }
      values.push_back(absl::StrCat(one.first.Scalar(), "=", one.second.Scalar()));
    }
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat(place, flag.is_list ? " has no value" : " has no value, or more than one"));
  }
  return values;
}

// Returns the values of a file by flag.
absl::StatusOr<std::map<std::string, std::vector<std::string>>> ReadFile(
    const std::string& file, const std::vector<KnownFlag>& flags) {
  std::map<std::string, std::vector<std::string>> values;
  std::vector<std::string> names;
  names.reserve(flags.size());
  for (const KnownFlag& flag : flags) names.emplace_back(absl::StripPrefix(flag.name, "--"));
  try {
    const YAML::Node root = YAML::LoadFile(file);
    if (!root.IsMap() && !root.IsNull()) {
      return absl::InvalidArgumentError(
          absl::StrCat(file, " is not a map of flags, such as `http-port: 9000`"));
    }
    for (const auto& entry : root) {
      const std::string name = absl::StrReplaceAll(entry.first.Scalar(), {{"_", "-"}});
      const std::string place =
          absl::StrCat(file, " line ", entry.first.Mark().line + 1, ": ", name);
      const KnownFlag* known = nullptr;
      for (const KnownFlag& flag : flags) {
        if (flag.name == absl::StrCat("--", name)) known = &flag;
      }
      if (known == nullptr || known->name == kConfigFlag) {
        return absl::InvalidArgumentError(
            absl::StrCat(place, " is not a flag", DidYouMean(name, names)));
      }
      if (values.contains(known->name)) {
        return absl::InvalidArgumentError(absl::StrCat(place, " is there twice"));
      }
      ASSIGN_OR_RETURN(values[known->name], ValuesOf(entry.second, *known, place));
    }
  } catch (const YAML::BadFile&) {
    return absl::InvalidArgumentError(absl::StrCat(kConfigFlag, ": ", file, " cannot be read"));
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, " line ", error.mark.line + 1, ": ", error.msg));
  }
  return values;
}

// Kubernetes gives every container such variables of a Service that is called after the program.
bool IsOfKubernetes(const std::string& rest) {
  return rest == "PORT" || absl::StartsWith(rest, "PORT_") || absl::StartsWith(rest, "SERVICE_");
}

// Returns an address without user, password and query.
std::string WithoutSecrets(const std::string& value) {
  const size_t scheme = value.find("://");
  if (scheme == std::string::npos) return value;
  std::string shown = value.substr(0, value.find('?'));
  const size_t host = scheme + 3, at = shown.find('@', host);
  const bool is_hub = absl::EndsWith(absl::string_view(value).substr(0, scheme), "hf");
  if (!is_hub && at != std::string::npos && at < shown.find('/', host)) {
    shown.erase(host, at + 1 - host);
  }
  return shown;
}

std::string Scalar(const std::string& value) {
  YAML::Emitter emitter;
  emitter << WithoutSecrets(value);
  return emitter.c_str();
}

}  // namespace

absl::StatusOr<Settings> Settings::Read(const CLI::App& app, const std::string& prefix, int argc,
                                        const char* const* argv) {
  Settings settings;
  settings.program_ = argv[0];
  const std::vector<KnownFlag> flags = KnownFlags(app);
  const std::set<std::string> given = Given(argc, argv);
  for (const std::string& name : given) settings.origins_[name] = "command line";
  std::map<std::string, std::vector<std::string>> of_file;
  const std::string file = ConfigFile(prefix, argc, argv);
  if (!file.empty()) {
    ASSIGN_OR_RETURN(of_file, ReadFile(file, flags));
  }
  std::set<std::string> variables;
  for (const KnownFlag& flag : flags) {
    const std::string variable = VariableOf(prefix, flag.name);
    variables.insert(variable);
    if (given.contains(flag.name) || flag.name == kConfigFlag) continue;
    if (const char* value = std::getenv(variable.c_str())) {
      const std::vector<std::string> values =
          flag.is_list ? absl::StrSplit(value, ',') : std::vector<std::string>{value};
      RETURN_IF_ERROR(AddWords(flag, values, variable, settings.words_));
      settings.origins_[flag.name] = absl::StrCat("$", variable);
    } else if (const auto it = of_file.find(flag.name); it != of_file.end()) {
      RETURN_IF_ERROR(AddWords(flag, it->second, file, settings.words_));
      settings.origins_[flag.name] = file;
    }
  }
  const std::vector<std::string> known(variables.begin(), variables.end());
  for (char** entry = environ; *entry != nullptr; ++entry) {
    absl::string_view rest = *entry;
    const std::string name(rest.substr(0, rest.find('=')));
    if (!absl::ConsumePrefix(&rest, prefix) || variables.contains(name)) continue;
    if (IsOfKubernetes(name.substr(prefix.size()))) continue;
    settings.unknown_.push_back(absl::StrCat("$", name, " names no flag", DidYouMean(name, known)));
  }
  for (int i = 1; i < argc; ++i) settings.words_.emplace_back(argv[i]);
  return settings;
}

absl::StatusOr<Parsed> Settings::Parse(CLI::App& app, const std::string& version) const {
  std::vector<const char*> words = {program_.c_str()};
  for (const std::string& word : words_) words.push_back(word.c_str());
  absl::StatusOr<Parsed> parsed =
      command_line::Parse(app, version, static_cast<int>(words.size()), words.data());
  if (parsed.ok()) return parsed;
  const absl::string_view why = parsed.status().message();
  for (const auto& [flag, origin] : origins_) {
    if (origin == "command line" || !absl::StartsWith(why, flag)) continue;
    const absl::string_view after = why.substr(flag.size());
    if (after.empty() || (after[0] != ':' && after[0] != ' ')) continue;
    return absl::InvalidArgumentError(absl::StrCat(why, " (it comes from ", origin, ")"));
  }
  return parsed;
}

std::string Settings::Text(const CLI::App& app) const {
  std::string text;
  for (const KnownFlag& flag : KnownFlags(app)) {
    const std::string name(absl::StripPrefix(flag.name, "--"));
    const CLI::Option* option = app.get_option(flag.name);
    const auto origin = origins_.find(flag.name);
    std::vector<std::string> values = option->results();
    std::string from = origin == origins_.end() ? "default" : origin->second;
    if (values.empty() && !option->get_default_str().empty()) values = {option->get_default_str()};
    if (from == "default" && option->count() > 0) from = absl::StrCat("$", option->get_envname());
    if (flag.is_switch) values = {option->count() > 0 && option->as<bool>() ? "true" : "false"};
    if (values.empty()) {
      absl::StrAppend(&text, "# ", name, ":  # not set\n");
    } else if (!flag.is_list) {
      absl::StrAppend(&text, name, ": ", Scalar(values.back()), "  # ", from, "\n");
    } else {
      absl::StrAppend(&text, name, ":  # ", from, "\n");
      for (const std::string& value : values) absl::StrAppend(&text, "  - ", Scalar(value), "\n");
    }
  }
  return text;
}

}  // namespace reprise::command_line
