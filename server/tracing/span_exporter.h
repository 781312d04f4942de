// SpanExporter: sends traces that have ended to a collector, as OTLP over HTTP (protobuf).
//
// Spans wait in a queue of at most kMostWaiting; more are dropped and counted, so that a collector
// that is slow or away costs no request anything. A thread of its own takes them in batches and
// tries a batch again while the collector is away, up to kTries times.
//
// Threads: Take from any; Finish and the destructor from one.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/mutex.h"
#include "server/tracing/request_trace.h"

namespace reprise {

struct SpanExporterOptions {
  // Sends the body of one POST. UNAVAILABLE is tried again; any other error loses the batch.
  // `cancelled` ends it early.
  std::function<absl::Status(const std::string& body, const std::function<bool()>& cancelled)> send;
  std::vector<SpanAttribute> resource;  // describes the server: service.name ...
  std::string version;
  // Told of spans that arrived at the collector, that had no room, and that the collector refused
  // or did not take in time.
  std::function<void(int64_t exported, int64_t dropped, int64_t failed)> on_spans =
      [](int64_t, int64_t, int64_t) {};
  // Told of the first failure in a row, and, with OK, of the first success after it.
  std::function<void(const absl::Status& why)> on_trouble = [](const absl::Status&) {};
  std::chrono::nanoseconds delay = std::chrono::seconds(1);  // spans wait for others
};

class SpanExporter final : public TraceSink {
 public:
  static constexpr size_t kMostWaiting = 16384;
  static constexpr size_t kBatch = 1024;
  static constexpr int kTries = 5;

  explicit SpanExporter(SpanExporterOptions options);
  ~SpanExporter() override;

  void Take(EndedTrace trace) noexcept override EXCLUDES(mutex_);
  // Sends the rest, within `time`; later spans are dropped.
  void Finish(std::chrono::nanoseconds time) EXCLUDES(mutex_);

 private:
  void Run() EXCLUDES(mutex_);
  // Sends one batch. Returns whether there was one.
  bool SendBatch() EXCLUDES(mutex_);
  std::string Encode(const std::vector<EndedTrace>& traces) const;
  // Waits before another try; returns false once the exporter is ending.
  bool WaitToRetry(int tried) EXCLUDES(mutex_);
  bool IsLate() const EXCLUDES(mutex_);

  const SpanExporterOptions options_;
  bool troubled_ = false;  // used by the thread alone
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<EndedTrace> waiting_ GUARDED_BY(mutex_);
  size_t spans_waiting_ GUARDED_BY(mutex_) = 0;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::chrono::steady_clock::time_point end_ GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace reprise
