#include "server/log.h"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/shown_text.h"
#include "server/log_lines.h"

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

class LinesSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit LinesSink(std::shared_ptr<LogLines> lines) : lines_(std::move(lines)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    lines_->Add({line.data(), line.size()});
  }
  void flush_() override {}

 private:
  const std::shared_ptr<LogLines> lines_;
};

}  // namespace

Log::Log(LogFormat format, const LogLevels& levels, std::shared_ptr<spdlog::sinks::sink> sink)
    : Log(format, levels, std::move(sink), nullptr) {}

Log::Log(LogFormat format, const LogLevels& levels, std::shared_ptr<spdlog::sinks::sink> sink,
         std::shared_ptr<LogLines> lines)
    : format_(format),
      levels_(levels),
      logger_(std::make_unique<spdlog::logger>("reprised", std::move(sink))),
      lines_(std::move(lines)) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  formatter->set_pattern(format == LogFormat::kJson
                             ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})"
                             : "%Y-%m-%dT%H:%M:%S.%eZ %l %v");
  logger_->set_formatter(std::move(formatter));
  logger_->set_level(spdlog::level::debug);  // levels_ says which lines there are
  logger_->flush_on(spdlog::level::debug);
}

std::unique_ptr<Log> Log::ToStandardError(LogFormat format, const LogLevels& levels) {
  const auto lines = std::make_shared<LogLines>(STDERR_FILENO);
  std::unique_ptr<Log> log(new Log(format, levels, std::make_shared<LinesSink>(lines), lines));
  // By default lines that cannot be written are reported to the standard error, which may block.
  log->logger_->set_error_handler([lines](const std::string&) { lines->CountDropped(); });
  return log;
}

Log::~Log() = default;

void Log::Write(LogLevel level, absl::string_view message, absl::Span<const LogField> fields) {
  if (Wants(level)) Put(level, message, fields);
}

void Log::WriteEvent(LogLevel level, absl::string_view sentence, absl::string_view event,
                     absl::Span<const LogField> fields) {
  if (!Wants(level)) return;
  if (format_ == LogFormat::kJson) {
    Put(level, event, fields);
  } else {
    Put(level, sentence, {});
  }
}

void Log::WriteOf(LogModule module, absl::string_view message) {
  Put(LogLevel::kDebug, absl::StrCat(LogModuleName(module), ": ", message), {});
}

void Log::Put(LogLevel level, absl::string_view message, absl::Span<const LogField> fields) {
  if (const int64_t lost = lines_ != nullptr ? lines_->TakeUntold() : 0; lost > 0) {
    PutLine(LogLevel::kWarning,
            absl::StrCat("the collector of the log is too slow: ", lost, " lines were dropped"),
            {});
  }
  PutLine(level, message, fields);
}

void Log::PutLine(LogLevel level, absl::string_view message, absl::Span<const LogField> fields) {
  const std::string line =
      format_ == LogFormat::kJson ? AsJson(message, fields) : AsText(message, fields);
  logger_->log(SpdlogLevel(level), spdlog::string_view_t(line.data(), line.size()));
}

void Log::Flush(std::chrono::nanoseconds at_most) {
  if (lines_ != nullptr) lines_->Flush(at_most);
}

int64_t Log::TakeDropped() { return lines_ != nullptr ? lines_->TakeDropped() : 0; }

}  // namespace reprise
