// Tracer: which requests are traced. A request whose caller sends a `traceparent` is traced where
// the caller records it; of the others a share is.
//
// Threads: all methods from any. A request that is not traced costs one load.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "runtime/base/mutex.h"
#include "server/tracing/request_trace.h"

namespace reprise {

struct TraceSettings {
  bool on = true;
  double share = 1;    // the share of requests whose callers say nothing
  int64_t count = -1;  // traces that are still begun; -1: no limit

  friend bool operator==(const TraceSettings&, const TraceSettings&) = default;
};

class Tracer {
 public:
  Tracer(std::shared_ptr<TraceSink> sink, const TraceSettings& settings);

  // Begins the trace of a request that has come: `parent` and `state` are its headers, `name` makes
  // the name of its span. Null: it is not traced.
  std::shared_ptr<RequestTrace> Begin(absl::string_view parent, absl::string_view state,
                                      absl::FunctionRef<std::string()> name);

  TraceSettings settings() const EXCLUDES(mutex_);
  // Settings at the start, which a client may ask to have back.
  const TraceSettings& defaults() const { return defaults_; }
  void Set(const TraceSettings& settings) EXCLUDES(mutex_);

 private:
  // Takes one of the traces that are left.
  bool TakeOne() EXCLUDES(mutex_);

  const std::shared_ptr<TraceSink> sink_;
  const TraceSettings defaults_;
  std::atomic<bool> on_;
  mutable Mutex mutex_;
  TraceSettings settings_ GUARDED_BY(mutex_);
};

}  // namespace reprise
