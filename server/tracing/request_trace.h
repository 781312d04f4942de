// RequestTrace: the spans of one request, from its arrival until it is answered.
//
//   trace->Add({.name = "queue", .start_ns = enqueued, .end_ns = taken});
//   trace->End({});   // the answer has left
//
// Times are of the server's steady clock. Spans added after the end are exported by themselves: a
// replay may end after the client was told of its deadline.
//
// Threads: all methods from any.
// Memory:  may throw for want of it, except for End.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/base/mutex.h"
#include "server/tracing/trace_context.h"

namespace reprise {

struct SpanAttribute {
  std::string name;
  std::variant<std::string, int64_t, double, bool> value;
};

struct TraceSpan {
  std::string name;
  uint64_t id = 0;      // 0: a new one
  uint64_t parent = 0;  // 0: the span of the request
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  std::vector<SpanAttribute> attributes = {};
  std::string error = {};   // not empty: it failed
  bool is_request = false;  // the span of the request itself
};

// The spans of one trace, ready to be sent.
struct EndedTrace {
  TraceContext context;        // its span is the caller's, 0 without one
  int64_t unix_offset_ns = 0;  // added to the times of spans, gives times since 1970
  std::vector<TraceSpan> spans;
};

// Where traces go once they have ended. Threads: any; must not block.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  virtual void Take(EndedTrace trace) noexcept = 0;
};

class RequestTrace {
 public:
  // More spans of one request are left out, and counted in an attribute of its own span.
  static constexpr size_t kMostSpans = 128;

  // `context`: the trace; its span is the caller's, or 0. `name`: "POST /v2/models/{model}/infer".
  RequestTrace(std::shared_ptr<TraceSink> sink, TraceContext context, std::string name,
               int64_t start_ns);
  ~RequestTrace() { End("the client has left"); }

  // Adds a span and returns its id.
  uint64_t Add(TraceSpan span) EXCLUDES(mutex_);
  // Adds to the request's own span.
  void AddAttribute(SpanAttribute attribute) EXCLUDES(mutex_);
  // Ends the request and hands its spans on; the first call counts. `error`: "" where all is well.
  void End(absl::string_view error) noexcept EXCLUDES(mutex_);

  // Returns the headers of an answer: the client finds the request's span by them.
  std::string parent_text() const { return TraceParentText(context_, id_); }
  const std::string& state() const { return context_.state; }
  std::string id_text() const { return TraceIdText(context_.trace); }

 private:
  const std::shared_ptr<TraceSink> sink_;
  const TraceContext context_;
  const uint64_t id_;
  const int64_t unix_offset_ns_;
  Mutex mutex_;
  bool ended_ GUARDED_BY(mutex_) = false;
  int64_t left_out_ GUARDED_BY(mutex_) = 0;
  std::vector<TraceSpan> spans_ GUARDED_BY(mutex_);  // the first is the request's
};

// Returns a number that is not zero, different each time.
uint64_t NewSpanId();

}  // namespace reprise
