#include "server/protocol/log_settings.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

using SettingValue = inference::LogSettingsRequest::SettingValue;

absl::Status WrongKind(const std::string& name, absl::string_view kind) {
  return absl::InvalidArgumentError(absl::StrCat("log setting '", name, "' must be ", kind));
}

// Shows lines of `level` or hides them: levels are ordered, so that the levels above it follow.
void Show(LogLevel level, bool shown, LogLevels& levels) {
  const auto below = static_cast<LogLevel>(static_cast<int>(level) + 1);
  if (shown && levels.base > level) levels.base = level;
  if (!shown && levels.base <= level) levels.base = below;
}

absl::Status Apply(const std::string& name, const SettingValue& value, LogLevels& levels) {
  for (const LogLevel level : {LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError}) {
    if (name != absl::StrCat("log_", LogLevelName(level))) continue;
    if (!value.has_bool_param()) return WrongKind(name, "true or false");
    if (level == LogLevel::kError && !value.bool_param()) {
      return absl::UnimplementedError("errors are always logged");
    }
    Show(level, value.bool_param(), levels);
    return absl::OkStatus();
  }
  if (name == "log_verbose_level") {
    if (!value.has_uint32_param()) return WrongKind(name, "a number");
    if (value.uint32_param() > 0) {
      levels.base = LogLevel::kDebug;
    } else if (levels.base == LogLevel::kDebug) {
      levels.base = LogLevel::kInfo;
    }
    levels.debug.fill(levels.base == LogLevel::kDebug);
    return absl::OkStatus();
  }
  if (name == "reprise.log_level") {
    if (!value.has_string_param()) return WrongKind(name, "a text");
    ASSIGN_OR_RETURN(levels, LogLevels::Parse(value.string_param()));
    return absl::OkStatus();
  }
  if (name == "log_file" || name == "log_format") {
    return absl::UnimplementedError(
        absl::StrCat("log setting '", name, "' cannot be changed while the server serves"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "there is no log setting '", name,
      "', only log_info, log_warning, log_error, log_verbose_level, reprise.log_level"));
}

}  // namespace

absl::StatusOr<inference::LogSettingsResponse> AnswerLogSettings(
    const inference::LogSettingsRequest& request, LogSwitch& log) {
  LogLevels levels = log.levels();
  for (const auto& [name, value] : request.settings()) {
    // Clients name settings that they do not want to change without a value.
    if (value.parameter_choice_case() == SettingValue::PARAMETER_CHOICE_NOT_SET) continue;
    RETURN_IF_ERROR(Apply(name, value, levels));
  }
  if (!request.settings().empty()) log.Set(levels);
  inference::LogSettingsResponse response;
  auto& settings = *response.mutable_settings();
  for (const LogLevel level : {LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError}) {
    settings[absl::StrCat("log_", LogLevelName(level))].set_bool_param(levels.base <= level);
  }
  settings["log_verbose_level"].set_uint32_param(levels.base == LogLevel::kDebug ? 1 : 0);
  settings["log_file"].set_string_param("");
  settings["log_format"].set_string_param("ISO8601");
  settings["reprise.log_level"].set_string_param(levels.ToString());
  return response;
}

}  // namespace reprise
