// LogLevels: how much is logged, in all and by module: "info,capture=debug,store=debug".
#pragma once

#include <array>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/debug_log.h"

namespace reprise {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
absl::string_view LogLevelName(LogLevel level);  // "debug"

struct LogLevels {
  LogLevel base = LogLevel::kInfo;
  // The modules whose debug lines are shown, whatever `base` is; with `base` debug all are shown
  // but those that are named with a higher level.
  std::array<bool, kNumLogModules> debug = {};

  // "info,capture=debug"; Parse(ToString()) is the same.
  std::string ToString() const;
  // INVALID_ARGUMENT names the unknown level or module, and lists the known ones.
  static absl::StatusOr<LogLevels> Parse(absl::string_view text);
  friend bool operator==(const LogLevels&, const LogLevels&) = default;
};

}  // namespace reprise
