#include "server/trace_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"

namespace reprise {

absl::StatusOr<std::unique_ptr<TraceFile>> TraceFile::Open(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("--trace-file ", path, " cannot be written: ", std::strerror(errno)));
  }
  std::fputs("[", file);
  std::fflush(file);
  return std::unique_ptr<TraceFile>(new TraceFile(file, SteadyClock().NowNs()));
}

TraceFile::~TraceFile() {
  std::fputs("\n]\n", file_);
  std::fclose(file_);
}

void TraceFile::Add(absl::string_view category, absl::string_view name, int64_t start_ns,
                    int64_t end_ns,
                    const std::vector<std::pair<std::string, std::string>>& arguments) {
  nlohmann::ordered_json event = {
      {"name", std::string(name)},
      {"cat", std::string(category)},
      {"ph", "X"},
      {"ts", static_cast<double>(start_ns - opened_ns_) / 1e3},
      {"dur", static_cast<double>(end_ns - start_ns) / 1e3},
      {"pid", getpid()},
      {"tid", gettid()},
  };
  for (const auto& [key, value] : arguments) event["args"][key] = value;
  const std::string line = event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  MutexLock lock(mutex_);
  std::fputs(any_ ? ",\n" : "\n", file_);
  any_ = true;
  std::fputs(line.c_str(), file_);
  std::fflush(file_);
}

}  // namespace reprise
