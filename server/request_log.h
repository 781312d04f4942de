// RequestLog: the lines of single requests: one for each with --access-log, whatever became of it,
// and one at debug for each that a model was asked and that failed. A line holds no tensor, and no
// key: only the name that the key file gives it.
//
// Threads: all methods from any.
#pragma once

#include <chrono>

#include "server/http/http_server.h"
#include "server/http2/call_head.h"
#include "server/log.h"
#include "server/repository/events.h"

namespace reprise {

class RequestLog {
 public:
  // `log` outlives the object. `every`: a line for each request, also for those that are answered.
  RequestLog(Log& log, bool every) : log_(log), every_(every) {}

  // Requests that reached no model, in the words of their protocol; where `every` alone.
  void OnHttp(const AnsweredRequest& request) const;
  void OnRpc(const CallHead& head, const absl::Status& status, std::chrono::nanoseconds took) const;
  bool every() const { return every_; }

  void OnRequest(const RequestRecord& record) const {
    // The level may change at any time.
    if (every_ || (record.code != absl::StatusCode::kOk && log_.Wants(LogLevel::kDebug))) {
      Write(record);
    }
  }

 private:
  void Write(const RequestRecord& record) const;

  Log& log_;
  const bool every_;
};

}  // namespace reprise
