#include "server/tracing/request_trace.h"

#include <chrono>
#include <random>

#include "runtime/base/memory_net.h"

namespace reprise {
namespace {

using std::chrono::nanoseconds;

int64_t SteadyNs() { return std::chrono::steady_clock::now().time_since_epoch() / nanoseconds(1); }

// Returns the offset. The clocks are compared for each trace: the system's is set now and then.
int64_t UnixOffsetNs() {
  return std::chrono::system_clock::now().time_since_epoch() / nanoseconds(1) - SteadyNs();
}

}  // namespace

uint64_t NewSpanId() {
  thread_local std::mt19937_64 random = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  uint64_t id = 0;
  while (id == 0) id = random();
  return id;
}

RequestTrace::RequestTrace(std::shared_ptr<TraceSink> sink, TraceContext context, std::string name,
                           int64_t start_ns)
    : sink_(std::move(sink)),
      context_(std::move(context)),
      id_(NewSpanId()),
      unix_offset_ns_(UnixOffsetNs()) {
  spans_.push_back({.name = std::move(name),
                    .id = id_,
                    .parent = context_.span,
                    .start_ns = start_ns,
                    .is_request = true});
}

uint64_t RequestTrace::Add(TraceSpan span) {
  if (span.id == 0) span.id = NewSpanId();
  if (span.parent == 0) span.parent = id_;
  const uint64_t id = span.id;
  {
    MutexLock lock(mutex_);
    if (!ended_) {
      if (spans_.size() < kMostSpans) {
        spans_.push_back(std::move(span));
      } else {
        ++left_out_;
      }
      return id;
    }
  }
  EndedTrace late = {.context = context_, .unix_offset_ns = unix_offset_ns_};
  late.spans.push_back(std::move(span));
  sink_->Take(std::move(late));
  return id;
}

void RequestTrace::AddAttribute(SpanAttribute attribute) {
  MutexLock lock(mutex_);
  if (!ended_) spans_[0].attributes.push_back(std::move(attribute));
}

void RequestTrace::End(absl::string_view error) noexcept {
  WhereMemoryAllows([&] {
    EndedTrace ended = {.context = context_, .unix_offset_ns = unix_offset_ns_};
    {
      MutexLock lock(mutex_);
      if (ended_) return;
      ended_ = true;
      TraceSpan& own = spans_[0];
      own.end_ns = SteadyNs();
      own.error = std::string(error);
      if (left_out_ > 0) own.attributes.push_back({"spans_left_out", left_out_});
      ended.spans.swap(spans_);
    }
    sink_->Take(std::move(ended));
  });
}

}  // namespace reprise
