// LoadReports: the load of the server, as balancers read it with answers (ORCA): in a trailer of
// gRPC, in a header of HTTP.
//
// A report is measured at most every kFresh, however many answers carry it: an answer then costs a
// copy of its text.
//
// Threads: all methods from any; `measure` is called by one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/orca_report.pb.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "server/config/options.h"
#include "server/http/http_message.h"
#include "server/http2/call_head.h"
#include "server/http2/http2_session.h"

namespace reprise {

class LoadReports {
 public:
  using Report = xds::data::orca::v3::OrcaLoadReport;

  static constexpr std::chrono::milliseconds kFresh{20};

  // The clock outlives the object.
  LoadReports(LoadReportMode mode, const Clock& clock, std::function<Report()> measure)
      : mode_(mode), clock_(clock), measure_(std::move(measure)) {}

  // Returns whether clients may ask for the stream of reports.
  bool has_stream() const { return mode_ != LoadReportMode::kOff; }
  std::shared_ptr<const Report> Now() EXCLUDES(mutex_) { return NowRendered()->report; }

  // Adds the report to the answer of a call or a request of a model, where it is to have one.
  void AddTo(const CallHead& head, Http2Fields& trailers) EXCLUDES(mutex_);
  void AddTo(const HttpRequest& request, HttpFields& fields) EXCLUDES(mutex_);

 private:
  struct Rendered {
    int64_t at_ns = 0;
    std::shared_ptr<const Report> report;
    std::string base64;  // the bytes of the message
    std::string text, json;
  };

  std::shared_ptr<const Rendered> NowRendered() EXCLUDES(mutex_);
  // Returns whether an answer has a report, by the value of the request's
  // endpoint-load-metrics-format.
  bool IsWanted(absl::string_view format) const;

  // Constant after construction.
  const LoadReportMode mode_;
  const Clock& clock_;
  const std::function<Report()> measure_;
  // Guarded.
  Mutex mutex_;
  std::shared_ptr<const Rendered> rendered_ GUARDED_BY(mutex_);
};

// Returns "application_utilization=0.5, named_metrics.queue_tokens=12": the fields that are
// measured, in the order of their numbers, entries of maps by their names.
std::string LoadReportText(const LoadReports::Report& report);
// Returns the same as an object of JSON.
std::string LoadReportJson(const LoadReports::Report& report);

}  // namespace reprise
