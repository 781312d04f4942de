#include "server/text_api/error_form.h"

#include "absl/strings/str_cat.h"
#include "server/text_api/json_text.h"
#include "server/wire/error_table.h"

namespace reprise {
namespace {

// The words that clients of the forms read for a status.
struct Names {
  absl::StatusCode code;
  const char* openai_type;
  const char* openai_code;  // JSON
  const char* inference_type;
};
constexpr Names kNames[] = {
    {absl::StatusCode::kInternal, "server_error", "null", "Backend"},  // stands for all others
    {absl::StatusCode::kInvalidArgument, "invalid_request_error", "null", "Validation"},
    {absl::StatusCode::kFailedPrecondition, "invalid_request_error", "null", "Validation"},
    {absl::StatusCode::kUnimplemented, "invalid_request_error", "null", "Validation"},
    {absl::StatusCode::kNotFound, "invalid_request_error", "\"model_not_found\"", "Validation"},
    {absl::StatusCode::kResourceExhausted, "rate_limit_error", "\"resource_exhausted\"",
     "Overloaded"},
    {absl::StatusCode::kUnavailable, "server_error", "\"unavailable\"", "Unhealthy"},
    {absl::StatusCode::kDeadlineExceeded, "server_error", "\"deadline_exceeded\"", "Overloaded"},
};

const Names& NamesOf(absl::StatusCode code) {
  for (const Names& names : kNames) {
    if (names.code == code) return names;
  }
  return kNames[0];
}

std::string BodyOf(ErrorForm form, const absl::Status& status) {
  const std::string why = Quoted(ErrorMessage(status));
  const Names& names = NamesOf(status.code());
  switch (form) {
    case ErrorForm::kOpenAi:
      return absl::StrCat("{\"error\":{\"message\":", why, ",\"type\":\"", names.openai_type,
                          "\",\"param\":null,\"code\":", names.openai_code, "}}");
    case ErrorForm::kInference:
      return absl::StrCat("{\"error\":", why, ",\"error_type\":\"", names.inference_type, "\"}");
    case ErrorForm::kInferenceAndMessage:
      return absl::StrCat("{\"message\":", why, ",\"detail\":", why, ",\"error\":", why,
                          ",\"error_type\":\"", names.inference_type, "\"}");
  }
  return "{}";
}

}  // namespace

HttpReply TextErrorReply(ErrorForm form, const absl::Status& status) {
  int http = ErrorRowOf(status.code()).http;
  // Texts that cannot be used are 422 there.
  if (form != ErrorForm::kOpenAi && http == 400) http = 422;
  return {.status = http, .content_type = "application/json", .body = BodyOf(form, status)};
}

}  // namespace reprise
