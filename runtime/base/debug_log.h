// DebugLog: receives the engine's reports of its work in progress, a line and a phase at a time.
//
// No text is made that no reader wants: callers ask Wants() first, which is one load. Phases nest
// on a thread; each has a line where it begins and one where it ends, with its duration and by how
// much the resident memory of the process has changed meanwhile (other threads count too).
//
//   Phase phase(options.debug, LogModule::kCapture, [&] { return absl::StrCat("capture ", key); });
//   if (Wants(options.debug, LogModule::kPass)) options.debug->Say(LogModule::kPass, "...");
//
// Threads: all methods from any thread. Ownership: borrowed; null means that nothing is logged.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace reprise {

// The parts of the engine and of the server whose debug lines can be switched on separately.
enum class LogModule {
  kLoad,         // phases of loading a model
  kCertificate,  // measurements of padding
  kCapture,      // phases of a capture
  kPass,         // changes of each pass
  kKernel,       // which kernel a node got, and which it did not
  kStore,        // records read and written
  kLookup,       // keys that were looked for in the cache
  kQueue,        // batches that were formed
};
inline constexpr int kNumLogModules = 8;
absl::string_view LogModuleName(LogModule module);  // "load", "certificate", ...

class DebugLog {
 public:
  virtual ~DebugLog() = default;
  virtual bool Wants(LogModule module) const = 0;
  virtual void Say(LogModule module, const std::string& text) = 0;
  // Returns whether a trace of all phases is kept, also where Wants() says false.
  virtual bool traces() const { return false; }
  // Reports a phase of this thread that took from `start_ns` to `end_ns` of the steady clock.
  virtual void OnPhase(LogModule module, const std::string& name, int64_t start_ns,
                       int64_t end_ns) {}
};

inline bool Wants(const DebugLog* log, LogModule module) {
  return log != nullptr && log->Wants(module);
}

// Returns the bytes of memory that the process holds; 0 where the system does not tell.
int64_t ResidentBytes();

// A phase from its making to its end. `name` is called only where the log or a trace wants it.
class Phase {
 public:
  template <typename Name>
  Phase(DebugLog* log, LogModule module, const Name& name) {
    if (log == nullptr || !(log->Wants(module) || log->traces())) return;
    Begin(log, module, name());
  }
  ~Phase() { End(); }
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

  // Ends the phase before the object is destroyed.
  void End();

 private:
  void Begin(DebugLog* log, LogModule module, std::string name);

  DebugLog* log_ = nullptr;  // null: nothing listens, or the phase has ended
  LogModule module_ = LogModule::kLoad;
  std::string name_;
  int64_t start_ns_ = 0;
  int64_t start_rss_ = 0;
};

}  // namespace reprise
