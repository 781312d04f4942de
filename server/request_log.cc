#include "server/request_log.h"

#include <string>
#include <vector>

#include "runtime/base/shown_text.h"
#include "server/wire/error_table.h"

namespace reprise {
namespace {

constexpr int64_t kNsPerUs = 1000;

}  // namespace

void RequestLog::Write(const RequestRecord& record) const {
  // The cut comes first: a field may be long, and these two are the client's.
  const std::string id = ShownText(record.id, kShownIdBytes);
  const std::string model = ShownText(record.model);
  const std::string version = ShownText(record.version);
  std::vector<LogField> fields = {{"id", id}};
  if (!record.key.empty()) fields.push_back({"key", record.key});
  if (!record.trace_id.empty()) fields.push_back({"trace_id", record.trace_id});
  fields.insert(fields.end(), {{"model", model},
                               {"version", version},
                               {"code", ErrorRowOf(record.code).name},
                               {"rows", record.rows},
                               {"bytes_in", record.bytes_in},
                               {"bytes_out", record.bytes_out},
                               {"total_us", record.total_ns / kNsPerUs}});
  if (record.code == absl::StatusCode::kOk) {
    fields.insert(fields.end(),
                  {{"queue_us", record.times.queue_ns / kNsPerUs},
                   {"compute_us", (record.times.compute_input_ns + record.times.compute_infer_ns +
                                   record.times.compute_output_ns) /
                                      kNsPerUs},
                   {"bucket", record.bucket},
                   {"capture", record.capture}});
  } else {
    fields.push_back({"error", record.why});
  }
  log_.Write(every_ ? LogLevel::kInfo : LogLevel::kDebug, "request", fields);
}

void RequestLog::OnHttp(const AnsweredRequest& request) const {
  const std::string method = ShownText(request.method), path = ShownText(request.path);
  const std::string why = ShownText(request.why);
  std::vector<LogField> fields = {{"method", method}, {"path", path}, {"status", request.status}};
  if (!request.key.empty()) fields.push_back({"key", request.key});
  fields.insert(fields.end(), {{"bytes_in", request.bytes_in},
                               {"bytes_out", request.bytes_out},
                               {"total_us", request.total_ns / kNsPerUs}});
  if (!why.empty()) fields.push_back({"error", why});
  log_.Write(LogLevel::kInfo, "request", fields);
}

void RequestLog::OnRpc(const CallHead& head, const absl::Status& status,
                       std::chrono::nanoseconds took) const {
  const std::string path = ShownText(head.path), why = ErrorMessage(status);
  std::vector<LogField> fields = {{"path", path}, {"code", ErrorRowOf(status.code()).name}};
  if (head.key != nullptr) fields.push_back({"key", head.key->name()});
  fields.push_back({"total_us", took.count() / kNsPerUs});
  if (!status.ok()) fields.push_back({"error", why});
  log_.Write(LogLevel::kInfo, "request", fields);
}

}  // namespace reprise
