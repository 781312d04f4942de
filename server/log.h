// Log: the daemon's lines, as text for people or as a JSON object each.
//
// Nothing in a message can end its line early or change how another one reads: all that is no
// printable character is escaped, in both formats (see runtime/base/shown_text.h), and a message
// ends after 8192 bytes.
//
// No caller waits for the standard error: see log_lines.h.
//
//   Log log(LogFormat::kText, LogLevels(), sink);
//   log.Write(LogLevel::kInfo, "ready");            // 2026-01-01T00:00:00.000Z info ready
//   log.Write(LogLevel::kInfo, "request", {{"id", "a b"}, {"rows", 3}});  // ... id="a b" rows=3
//
// Threads: all methods from any.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/config/log_switch.h"
#include "server/config/options.h"

namespace spdlog {
class logger;
namespace sinks {
class sink;
}
}  // namespace spdlog

namespace reprise {

class LogLines;

using LogFunction = std::function<void(LogLevel level, const std::string& message)>;

// A value with its name: `id="a b"` in text, a member of the object in JSON.
struct LogField {
  absl::string_view name;
  std::variant<int64_t, absl::string_view> value;
};

class Log {
 public:
  // Writes to `sink`.
  Log(LogFormat format, const LogLevels& levels, std::shared_ptr<spdlog::sinks::sink> sink);
  // Writes to the standard error.
  static std::unique_ptr<Log> ToStandardError(LogFormat format, const LogLevels& levels);
  ~Log();

  // Returns the levels, which may change while others write.
  LogSwitch& levels() { return levels_; }
  bool Wants(LogLevel level) const { return levels_.Wants(level); }
  void Write(LogLevel level, absl::string_view message, absl::Span<const LogField> fields = {});
  // Writes an event that people read as one sentence: `sentence` in text, in JSON `event` and
  // its fields.
  void WriteEvent(LogLevel level, absl::string_view sentence, absl::string_view event,
                  absl::Span<const LogField> fields);
  // Writes a debug line of a module, which the level of all does not hold back:
  // LogSwitch::Wants(module) was asked.
  void WriteOf(LogModule module, absl::string_view message);
  // Write as a function. The log outlives it.
  LogFunction function() {
    return [this](LogLevel level, const std::string& message) { Write(level, message); };
  }
  // Waits until all lines are written, at most this long: before the process ends at once.
  void Flush(std::chrono::nanoseconds at_most);
  // Returns how many lines were dropped since the last call: its collector reads too slowly.
  int64_t TakeDropped();

 private:
  Log(LogFormat format, const LogLevels& levels, std::shared_ptr<spdlog::sinks::sink> sink,
      std::shared_ptr<LogLines> lines);
  void Put(LogLevel level, absl::string_view message, absl::Span<const LogField> fields);
  void PutLine(LogLevel level, absl::string_view message, absl::Span<const LogField> fields);

  const LogFormat format_;
  LogSwitch levels_;
  const std::unique_ptr<spdlog::logger> logger_;
  const std::shared_ptr<LogLines> lines_;  // null with a sink that was given
};

}  // namespace reprise
