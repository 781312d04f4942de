// TraceSender: the traces of the daemon, from its flags to the collector of --trace-endpoint.
//
// Threads: as Tracer and SpanExporter say; Finish from one.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "server/config/options.h"
#include "server/log.h"
#include "server/metrics/metric_table.h"
#include "server/tracing/span_exporter.h"
#include "server/tracing/tracer.h"

namespace reprise {

class TraceSender {
 public:
  // Returns nullptr without --trace-endpoint. `metrics` and the objects that `log` uses outlive it.
  static std::unique_ptr<TraceSender> Open(const Options& options, const std::string& version,
                                           const ServerMetrics& metrics, LogFunction log);

  Tracer& tracer() { return tracer_; }
  // Sends ended spans, within `time`.
  void Finish(std::chrono::nanoseconds time) { exporter_->Finish(time); }

 private:
  TraceSender(std::shared_ptr<SpanExporter> exporter, double share)
      : exporter_(std::move(exporter)), tracer_(exporter_, {.share = share}) {}

  const std::shared_ptr<SpanExporter> exporter_;
  Tracer tracer_;
};

// Returns the address that spans are posted to: OTLP's path is added where `endpoint` has none.
std::string SpanAddress(const std::string& endpoint);

}  // namespace reprise
