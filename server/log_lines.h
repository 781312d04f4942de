// LogLines: the lines of the log on their way to a descriptor, which may be read slowly or
// never. No caller waits for it.
//
// A line is written where it is added, if that cannot block: into a file, into a socket, and into a
// pipe or terminal over a descriptor of our own that does not block. The rest of it, and the lines
// after it, are kept up to a limit for a thread that waits; lines beyond the limit are dropped and
// counted.
//
// Threads: all methods from any.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>

#include "absl/strings/string_view.h"

namespace reprise {

class LogLines {
 public:
  static constexpr size_t kMostBytes = size_t{4} << 20;

  // `descriptor` outlives the process's use of it: it is not closed.
  explicit LogLines(int descriptor, size_t most_bytes = kMostBytes);
  // Waits a second at most for the kept lines; lines that are not read by then are lost.
  ~LogLines();
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;

  // Adds a line, with its end.
  void Add(absl::string_view line) noexcept;
  // Counts a line that could not be made.
  void CountDropped() noexcept;
  // Waits until all lines are written, at most this long. False: some are kept still.
  bool Flush(std::chrono::nanoseconds at_most);

  // Returns how many lines were dropped since the last call, for the metric.
  int64_t TakeDropped();
  // Does the same for a line of the log that reports them; 0 as long as there is no room for it.
  int64_t TakeUntold();

 private:
  struct State;

  const std::shared_ptr<State> state_;  // also the thread's, which may be stuck in a write for ever
  std::thread thread_;
};

}  // namespace reprise
