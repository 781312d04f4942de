// DebugLines: the engine's reports of its work, as lines of the log and as a trace.
//
// Threads: all methods from any thread.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/debug_log.h"
#include "server/log.h"
#include "server/trace_file.h"

namespace reprise {

class DebugLines final : public DebugLog {
 public:
  // `log` and `trace` outlive the object. `trace`: gets every phase; null: there is none.
  DebugLines(Log& log, TraceFile* trace) : log_(log), trace_(trace) {}

  bool Wants(LogModule module) const override { return log_.levels().Wants(module); }
  void Say(LogModule module, const std::string& text) override { log_.WriteOf(module, text); }
  bool traces() const override { return trace_ != nullptr; }
  void OnPhase(LogModule module, const std::string& name, int64_t start_ns,
               int64_t end_ns) override {
    if (trace_ != nullptr) trace_->Add(LogModuleName(module), name, start_ns, end_ns);
  }

 private:
  Log& log_;
  TraceFile* const trace_;
};

}  // namespace reprise
