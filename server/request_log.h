// RequestLog: the lines of single requests: one for each with --access-log, and one at debug for
// each that failed. A line holds no tensor, and no key: only the name that the key file gives it.
//
// Threads: all methods from any.
#pragma once

#include "server/log.h"
#include "server/repository/events.h"

namespace reprise {

class RequestLog {
 public:
  // `log` outlives the object. `every`: a line for each request, also for those that are answered.
  RequestLog(Log& log, bool every)
      : log_(log), every_(every), failures_(log.Wants(LogLevel::kDebug)) {}

  void OnRequest(const RequestRecord& record) const {
    if (every_ || (failures_ && record.code != absl::StatusCode::kOk)) Write(record);
  }

 private:
  void Write(const RequestRecord& record) const;

  Log& log_;
  const bool every_;
  const bool failures_;
};

}  // namespace reprise
