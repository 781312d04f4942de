#include "server/log.h"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/shown_text.h"

namespace reprise {
namespace {

constexpr size_t kMostMessageBytes = 8192;
constexpr size_t kMostFieldBytes = 2048;

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      break;
  }
  return spdlog::level::err;
}

// Printable text needs no other escapes in JSON than these two, which QuotedText makes.
std::string AsJson(absl::string_view message, absl::Span<const LogField> fields) {
  std::string line = absl::StrCat("\"message\":", QuotedText(message, kMostMessageBytes));
  for (const LogField& field : fields) {
    absl::StrAppend(&line, ",\"", field.name, "\":");
    if (const int64_t* number = std::get_if<int64_t>(&field.value)) {
      absl::StrAppend(&line, *number);
    } else {
      line += QuotedText(std::get<absl::string_view>(field.value), kMostFieldBytes);
    }
  }
  return line;
}

std::string AsText(absl::string_view message, absl::Span<const LogField> fields) {
  std::string line = ShownText(message, kMostMessageBytes);
  for (const LogField& field : fields) {
    absl::StrAppend(&line, " ", field.name, "=");
    if (const int64_t* number = std::get_if<int64_t>(&field.value)) {
      absl::StrAppend(&line, *number);
    } else {
      line += QuotedText(std::get<absl::string_view>(field.value), kMostFieldBytes);
    }
  }
  return line;
}

}  // namespace

Log::Log(LogFormat format, const LogLevels& levels, std::shared_ptr<spdlog::sinks::sink> sink)
    : format_(format),
      levels_(levels),
      logger_(std::make_unique<spdlog::logger>("reprised", std::move(sink))) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  formatter->set_pattern(format == LogFormat::kJson
                             ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})"
                             : "%Y-%m-%dT%H:%M:%S.%eZ %l %v");
  logger_->set_formatter(std::move(formatter));
  logger_->set_level(spdlog::level::debug);  // levels_ says which lines there are
  logger_->flush_on(spdlog::level::debug);
}

std::unique_ptr<Log> Log::ToStandardError(LogFormat format, const LogLevels& levels) {
  return std::make_unique<Log>(format, levels, std::make_shared<spdlog::sinks::stderr_sink_mt>());
}

Log::~Log() = default;

void Log::Write(LogLevel level, absl::string_view message, absl::Span<const LogField> fields) {
  if (Wants(level)) Put(level, message, fields);
}

void Log::WriteOf(LogModule module, absl::string_view message) {
  Put(LogLevel::kDebug, absl::StrCat(LogModuleName(module), ": ", message), {});
}

void Log::Put(LogLevel level, absl::string_view message, absl::Span<const LogField> fields) {
  const std::string line =
      format_ == LogFormat::kJson ? AsJson(message, fields) : AsText(message, fields);
  logger_->log(SpdlogLevel(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace reprise
