// LogSwitch: which lines of the log are written, which may change while the server serves.
//
// Threads: all methods from any thread; asking is one load.
#pragma once

#include <array>
#include <atomic>

#include "runtime/base/debug_log.h"
#include "server/config/log_levels.h"

namespace reprise {

class LogSwitch {
 public:
  explicit LogSwitch(const LogLevels& levels) { Set(levels); }

  // Returns whether lines of `level` are written.
  bool Wants(LogLevel level) const { return level >= base_.load(std::memory_order_relaxed); }
  // Returns whether debug lines of `module` are, whatever the level of all is.
  bool Wants(LogModule module) const {
    return debug_[static_cast<size_t>(module)].load(std::memory_order_relaxed);
  }

  LogLevels levels() const {
    LogLevels levels = {.base = base_.load()};
    for (size_t i = 0; i < debug_.size(); ++i) levels.debug[i] = debug_[i].load();
    return levels;
  }
  void Set(const LogLevels& levels) {
    base_.store(levels.base);
    for (size_t i = 0; i < debug_.size(); ++i) debug_[i].store(levels.debug[i]);
  }

 private:
  // Self-synchronised.
  std::atomic<LogLevel> base_{LogLevel::kInfo};
  std::array<std::atomic<bool>, kNumLogModules> debug_ = {};
};

}  // namespace reprise
