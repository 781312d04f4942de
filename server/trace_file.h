// TraceFile: captures and replays as a trace that Chrome and Perfetto show (about:tracing).
//
// An array of complete events, one a line, written as they end; a viewer takes a file whose end is
// missing as well, so that a server that was killed leaves a trace too. Times are microseconds
// since the file was opened.
//
// Threads: all methods from any thread.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/mutex.h"

namespace reprise {

class TraceFile {
 public:
  // UNAVAILABLE naming a file that cannot be written.
  static absl::StatusOr<std::unique_ptr<TraceFile>> Open(const std::string& path);
  ~TraceFile();

  // Records an event from `start_ns` to `end_ns` of the steady clock on this thread.
  // `arguments`: shown with it, as texts.
  void Add(absl::string_view category, absl::string_view name, int64_t start_ns, int64_t end_ns,
           const std::vector<std::pair<std::string, std::string>>& arguments = {}) EXCLUDES(mutex_);

 private:
  TraceFile(std::FILE* file, int64_t opened_ns) : opened_ns_(opened_ns), file_(file) {}

  const int64_t opened_ns_;
  // Guarded.
  Mutex mutex_;
  std::FILE* const file_;
  bool any_ GUARDED_BY(mutex_) = false;
};

}  // namespace reprise
