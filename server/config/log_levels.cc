#include "server/config/log_levels.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace reprise {
namespace {

constexpr LogLevel kLevels[] = {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning,
                                LogLevel::kError};

std::optional<LogLevel> LevelNamed(absl::string_view name) {
  for (const LogLevel level : kLevels) {
    if (LogLevelName(level) == name) return level;
  }
  return std::nullopt;
}

std::optional<LogModule> ModuleNamed(absl::string_view name) {
  for (int i = 0; i < kNumLogModules; ++i) {
    if (LogModuleName(static_cast<LogModule>(i)) == name) return static_cast<LogModule>(i);
  }
  return std::nullopt;
}

absl::Status NoLevel(absl::string_view name) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "' is not a level: debug, info, warning or error"));
}

absl::Status NoModule(absl::string_view name) {
  std::vector<absl::string_view> names;
  for (int i = 0; i < kNumLogModules; ++i) {
    names.push_back(LogModuleName(static_cast<LogModule>(i)));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "' is not a module: ", absl::StrJoin(names, ", ")));
}

}  // namespace

absl::string_view LogLevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "";
}

std::string LogLevels::ToString() const {
  std::string text(LogLevelName(base));
  for (int i = 0; i < kNumLogModules; ++i) {
    if (debug[i] == (base == LogLevel::kDebug)) continue;
    absl::StrAppend(&text, ",", LogModuleName(static_cast<LogModule>(i)), "=",
                    debug[i] ? "debug" : "info");
  }
  return text;
}

absl::StatusOr<LogLevels> LogLevels::Parse(absl::string_view text) {
  LogLevels levels;
  std::vector<std::pair<LogModule, LogLevel>> modules;
  bool has_base = false;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> sides = absl::StrSplit(part, absl::MaxSplits('=', 1));
    const std::optional<LogLevel> level = LevelNamed(sides.back());
    if (!level.has_value()) return NoLevel(sides.back());
    if (sides.size() == 1) {
      if (has_base) {
        return absl::InvalidArgumentError(
            absl::StrCat("'", text, "' has two levels without a module"));
      }
      has_base = true;
      levels.base = *level;
      continue;
    }
    const std::optional<LogModule> module = ModuleNamed(sides[0]);
    if (!module.has_value()) return NoModule(sides[0]);
    modules.emplace_back(*module, *level);
  }
  levels.debug.fill(levels.base == LogLevel::kDebug);
  for (const auto& [module, level] : modules) {
    levels.debug[static_cast<size_t>(module)] = level == LogLevel::kDebug;
  }
  return levels;
}

}  // namespace reprise
