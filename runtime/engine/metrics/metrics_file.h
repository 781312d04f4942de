// MetricsFile: the metrics as a JSON file, written at the end, after captures, or periodically.
//
// The file is written under another name in its folder and renamed, so that a reader never sees
// half of it. Writing happens on a thread of its own: a capture only says that there is news.
//
// Threads: all methods from any thread.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "runtime/base/mutex.h"
#include "runtime/engine/types/metrics_triggers.h"

namespace reprise {

class MetricsFile {
 public:
  // Empty path: nothing is ever written. `make` makes the content, on the writer's thread; `warn`
  // is called for failed writes, once for each new failure.
  MetricsFile(std::string path, MetricsTriggers triggers, std::function<std::string()> make,
              std::function<void(const std::string&)> warn);
  ~MetricsFile();

  // Starts the thread that writes when it is due.
  void Start();
  // Writes it now, without regard to the triggers. UNAVAILABLE where it cannot be written.
  absl::Status WriteNow() const;
  void OnCapture() EXCLUDES(mutex_);
  // Ends the thread, and writes for the last time where the end is a trigger or something has
  // changed.
  void Finish() EXCLUDES(mutex_);

 private:
  void Run() EXCLUDES(mutex_);
  void Write();

  // Constant after construction.
  const std::string path_;
  const MetricsTriggers triggers_;
  const std::function<std::string()> make_;
  const std::function<void(const std::string&)> warn_;
  std::thread writer_;
  std::string last_failure_;  // the writer's
  // Guarded.
  Mutex mutex_;
  CondVar changed_;
  bool news_ GUARDED_BY(mutex_) = false;
  bool stopping_ GUARDED_BY(mutex_) = false;
};

}  // namespace reprise
