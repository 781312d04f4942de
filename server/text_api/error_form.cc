#include "server/text_api/error_form.h"

#include "absl/strings/str_cat.h"
#include "runtime/generate/context_overflow.h"
#include "server/http/openai_error.h"
#include "server/text_api/json_text.h"
#include "server/wire/error_table.h"

namespace reprise {
namespace {

// The kinds of errors that clients of text-embeddings-inference tell apart.
const char* InferenceType(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kNotFound:
      return "Validation";
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kDeadlineExceeded:
      return "Overloaded";
    case absl::StatusCode::kUnavailable:
      return "Unhealthy";
    default:
      return "Backend";
  }
}

// `why`: JSON.
std::string OpenAiObject(const std::string& why, const absl::Status& status) {
  const OpenAiError& error = OpenAiErrorOf(ErrorRowOf(status.code()).http);
  // The path is known: the model is the thing that was not found.
  const char* code = absl::IsNotFound(status)    ? "model_not_found"
                     : IsContextOverflow(status) ? "context_length_exceeded"
                                                 : error.code;
  return absl::StrCat("{\"message\":", why, ",\"type\":\"", error.type,
                      "\",\"param\":null,\"code\":", code != nullptr ? Quoted(code) : "null", "}");
}

std::string BodyOf(ErrorForm form, const absl::Status& status) {
  const std::string why = Quoted(ErrorMessage(status));
  const char* const type = InferenceType(status.code());
  switch (form) {
    case ErrorForm::kOpenAi:
      return absl::StrCat("{\"error\":", OpenAiObject(why, status), "}");
    case ErrorForm::kOpenAiAndMessage:
      return absl::StrCat("{\"message\":", why, ",\"detail\":", why,
                          ",\"error\":", OpenAiObject(why, status), "}");
    case ErrorForm::kInference:
      return absl::StrCat("{\"error\":", why, ",\"error_type\":\"", type, "\"}");
    case ErrorForm::kInferenceAndMessage:
      return absl::StrCat("{\"message\":", why, ",\"detail\":", why, ",\"error\":", why,
                          ",\"error_type\":\"", type, "\"}");
  }
  return "{}";
}

}  // namespace

ErrorForm FormAt(const RequestPath& path, ErrorForm form) {
  if (!IsOpenAiPath(path)) return form;
  return form == ErrorForm::kInferenceAndMessage ? ErrorForm::kOpenAiAndMessage
                                                 : ErrorForm::kOpenAi;
}

HttpReply TextErrorReply(ErrorForm form, const absl::Status& status) {
  int http = ErrorRowOf(status.code()).http;
  // Texts that cannot be used are 422 there; an unknown choice is 400.
  const bool is_openai = form == ErrorForm::kOpenAi || form == ErrorForm::kOpenAiAndMessage;
  if (!is_openai && http == 400 && !absl::IsOutOfRange(status)) http = 422;
  return {.status = http,
          .content_type = "application/json",
          .body = BodyOf(form, status),
          .why = ErrorMessage(status)};
}

}  // namespace reprise
