// LogSwitch: what of the log is written, which may change while the server serves.
//
// It is what the daemon hands to everything that logs, and what the engine tells its phases to.
//
// Threads: all methods from any thread; asking is one load.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <string>

#include "runtime/base/debug_log.h"
#include "server/config/log_levels.h"

namespace reprise {

using LogFunction = std::function<void(LogLevel level, const std::string& message)>;
// The name of a phase, its module, and its beginning and end on the steady clock.
using PhaseFunction = std::function<void(absl::string_view module, const std::string& name,
                                         int64_t start_ns, int64_t end_ns)>;

class LogSwitch final : public DebugLog {
 public:
  // `write` gets the lines that are to be written; `trace` every phase, where it is not null.
  LogSwitch(const LogLevels& levels, LogFunction write, PhaseFunction trace = nullptr)
      : write_(std::move(write)), trace_(std::move(trace)) {
    Set(levels);
  }

  void Log(LogLevel level, const std::string& message) const {
    if (level >= base_.load(std::memory_order_relaxed)) write_(level, message);
  }
  bool Wants(LogModule module) const override {
    return debug_[static_cast<size_t>(module)].load(std::memory_order_relaxed);
  }
  void Say(LogModule module, const std::string& text) override {
    write_(LogLevel::kDebug, std::string(LogModuleName(module)) + ": " + text);
  }
  bool traces() const override { return trace_ != nullptr; }
  void OnPhase(LogModule module, const std::string& name, int64_t start_ns,
               int64_t end_ns) override {
    trace_(LogModuleName(module), name, start_ns, end_ns);
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
  // Constant after construction.
  const LogFunction write_;
  const PhaseFunction trace_;
  // Self-synchronised.
  std::atomic<LogLevel> base_{LogLevel::kInfo};
  std::array<std::atomic<bool>, kNumLogModules> debug_ = {};
};

}  // namespace reprise
