#include "server/tracing/tracer.h"

#include <chrono>
#include <optional>
#include <utility>

#include "runtime/base/memory_net.h"

namespace reprise {
namespace {

// Decides as OpenTelemetry's TraceIdRatioBased decides: by the trace's own bits, so that several
// servers take the same traces.
bool IsInShare(uint64_t bits, double share) {
  if (share >= 1) return true;
  constexpr double kAll = 72057594037927936.0;  // 2^56
  return static_cast<double>(bits >> 8) < share * kAll;
}

}  // namespace

Tracer::Tracer(std::shared_ptr<TraceSink> sink, const TraceSettings& settings)
    : sink_(std::move(sink)), defaults_(settings), on_(settings.on), settings_(settings) {}

std::shared_ptr<RequestTrace> Tracer::Begin(absl::string_view parent, absl::string_view state,
                                            absl::FunctionRef<std::string()> name) {
  if (!on_.load(std::memory_order_relaxed)) return nullptr;
  std::shared_ptr<RequestTrace> trace;
  WhereMemoryAllows([&] {
    std::optional<TraceContext> context =
        parent.empty() ? std::nullopt : ReadTraceContext(parent, state);
    if (!context.has_value()) {
      context.emplace();
      context->trace = {NewSpanId(), NewSpanId()};
      context->sampled = IsInShare(context->trace[1], this->settings().share);
    }
    if (!context->sampled || !TakeOne()) return;
    const int64_t now_ns =
        std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
    trace = std::make_shared<RequestTrace>(sink_, *std::move(context), name(), now_ns);
  });
  return trace;
}

bool Tracer::TakeOne() {
  MutexLock lock(mutex_);
  if (!settings_.on || settings_.count == 0) return false;
  if (settings_.count > 0) --settings_.count;
  return true;
}

TraceSettings Tracer::settings() const {
  MutexLock lock(mutex_);
  return settings_;
}

void Tracer::Set(const TraceSettings& settings) {
  MutexLock lock(mutex_);
  settings_ = settings;
  on_.store(settings.on, std::memory_order_relaxed);
}

}  // namespace reprise
