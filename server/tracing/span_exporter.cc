#include "server/tracing/span_exporter.h"

#include <algorithm>
#include <array>
#include <memory>

#include "proto/otlp.pb.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/shown_text.h"

namespace reprise {
namespace {

constexpr std::chrono::milliseconds kFirstRetry(500);

// Ids travel with their high byte first.
template <size_t kWords>
std::string BigEndian(const std::array<uint64_t, kWords>& words) {
  std::string bytes;
  for (const uint64_t word : words) {
    for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(word >> shift);
  }
  return bytes;
}

void Fill(const SpanAttribute& attribute, otlp::KeyValue& to) {
  to.set_key(attribute.name);
  otlp::AnyValue& value = *to.mutable_value();
  if (const auto* text = std::get_if<std::string>(&attribute.value)) {
    value.set_string_value(ShownText(*text));
  } else if (const auto* number = std::get_if<int64_t>(&attribute.value)) {
    value.set_int_value(*number);
  } else if (const auto* real = std::get_if<double>(&attribute.value)) {
    value.set_double_value(*real);
  } else {
    value.set_bool_value(std::get<bool>(attribute.value));
  }
}

void Fill(const EndedTrace& trace, const TraceSpan& span, otlp::Span& to) {
  to.set_trace_id(BigEndian(trace.context.trace));
  to.set_span_id(BigEndian<1>({span.id}));
  if (span.parent != 0) to.set_parent_span_id(BigEndian<1>({span.parent}));
  to.set_trace_state(trace.context.state);
  to.set_name(ShownText(span.name));
  to.set_kind(span.is_request ? otlp::Span::SPAN_KIND_SERVER : otlp::Span::SPAN_KIND_INTERNAL);
  to.set_start_time_unix_nano(static_cast<uint64_t>(span.start_ns + trace.unix_offset_ns));
  to.set_end_time_unix_nano(
      static_cast<uint64_t>(std::max(span.start_ns, span.end_ns) + trace.unix_offset_ns));
  to.set_flags(1);
  for (const SpanAttribute& attribute : span.attributes) Fill(attribute, *to.add_attributes());
  if (span.error.empty()) return;
  to.mutable_status()->set_code(otlp::Status::STATUS_CODE_ERROR);
  to.mutable_status()->set_message(ShownText(span.error));
}

}  // namespace

SpanExporter::SpanExporter(SpanExporterOptions options) : options_(std::move(options)) {
  thread_ = std::thread([this] { Run(); });
}

SpanExporter::~SpanExporter() { Finish(std::chrono::nanoseconds::zero()); }

void SpanExporter::Take(EndedTrace trace) noexcept {
  const size_t spans = trace.spans.size();
  bool taken = false;
  WhereMemoryAllows([&] {
    MutexLock lock(mutex_);
    if (ending_ || spans_waiting_ + spans > kMostWaiting) return;
    waiting_.push_back(std::move(trace));
    spans_waiting_ += spans;
    taken = true;
    if (spans_waiting_ >= kBatch) changed_.NotifyOne();
  });
  if (!taken) options_.on_spans(0, static_cast<int64_t>(spans), 0);
}

void SpanExporter::Finish(std::chrono::nanoseconds time) {
  {
    MutexLock lock(mutex_);
    if (!ending_) end_ = std::chrono::steady_clock::now() + time;
    ending_ = true;
    changed_.NotifyOne();
  }
  if (thread_.joinable()) thread_.join();
}

void SpanExporter::Run() {
  while (true) {
    bool ending = false;
    {
      MutexLock lock(mutex_);
      if (!ending_ && spans_waiting_ < kBatch) changed_.WaitFor(mutex_, options_.delay);
      ending = ending_;
    }
    while (SendBatch()) {
    }
    if (ending) return;
  }
}

bool SpanExporter::SendBatch() {
  std::vector<EndedTrace> batch;
  int64_t spans = 0;
  {
    MutexLock lock(mutex_);
    while (!waiting_.empty() && spans < static_cast<int64_t>(kBatch)) {
      const auto more = static_cast<int64_t>(waiting_.front().spans.size());
      if (!WhereMemoryAllows([&] { batch.emplace_back(std::move(waiting_.front())); })) break;
      spans += more;
      waiting_.pop_front();
    }
    spans_waiting_ -= static_cast<size_t>(spans);
  }
  if (spans == 0) return false;
  absl::Status sent;
  for (int tried = 1;; ++tried) {
    sent = WithinMemory([] { return "spans"; },
                        [&] { return options_.send(Encode(batch), [this] { return IsLate(); }); });
    if (sent.ok() != !troubled_) {
      options_.on_trouble(sent);
      troubled_ = !sent.ok();
    }
    if (sent.ok() || !absl::IsUnavailable(sent) || tried == kTries || !WaitToRetry(tried)) break;
  }
  options_.on_spans(sent.ok() ? spans : 0, 0, sent.ok() ? 0 : spans);
  return true;
}

bool SpanExporter::WaitToRetry(int tried) {
  const auto end = std::chrono::steady_clock::now() + kFirstRetry * (1 << (tried - 1));
  MutexLock lock(mutex_);
  while (!ending_ && std::chrono::steady_clock::now() < end) {
    changed_.WaitFor(mutex_, end - std::chrono::steady_clock::now());
  }
  return !ending_;
}

bool SpanExporter::IsLate() const {
  MutexLock lock(mutex_);
  return ending_ && std::chrono::steady_clock::now() >= end_;
}

std::string SpanExporter::Encode(const std::vector<EndedTrace>& traces) const {
  otlp::ExportTraceServiceRequest request;
  otlp::ResourceSpans& of_server = *request.add_resource_spans();
  for (const SpanAttribute& attribute : options_.resource) {
    Fill(attribute, *of_server.mutable_resource()->add_attributes());
  }
  otlp::ScopeSpans& scope = *of_server.add_scope_spans();
  scope.mutable_scope()->set_name("reprise");
  scope.mutable_scope()->set_version(options_.version);
  for (const EndedTrace& trace : traces) {
    for (const TraceSpan& span : trace.spans) Fill(trace, span, *scope.add_spans());
  }
  return request.SerializeAsString();
}

}  // namespace reprise
