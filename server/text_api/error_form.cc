#include "server/text_api/error_form.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "runtime/generate/context_overflow.h"
#include "runtime/json/json_writer.h"
#include "server/http/openai_error.h"
#include "server/wire/error_table.h"

namespace reprise {
namespace {

// Returns the kind of errors that clients of text-embeddings-inference tell apart.
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

// Returns the member of the request that an error names first, as errors of requests begin: "stop",
// parameter 'n', messages[2].content. Empty: it names none.
std::string MemberOf(absl::string_view why) {
  constexpr absl::string_view kMember = "\"", kParameter = "parameter '", kMessage = "messages[";
  if (absl::ConsumePrefix(&why, kParameter)) return std::string(why.substr(0, why.find('\'')));
  if (absl::ConsumePrefix(&why, kMember)) return std::string(why.substr(0, why.find('"')));
  if (absl::StartsWith(why, kMessage)) return std::string(why.substr(0, why.find(' ')));
  return "";
}

void WriteOpenAi(const absl::Status& status, JsonWriter& json) {
  const OpenAiError& error = OpenAiErrorOf(ErrorRowOf(status.code()).http);
  // The path is known: the model is the thing that was not found.
  const char* code = absl::IsNotFound(status)    ? "model_not_found"
                     : IsContextOverflow(status) ? "context_length_exceeded"
                                                 : error.code;
  json.Object("error", [&] {
    const std::string why = ErrorMessage(status);
    const std::string member = absl::IsNotFound(status) ? "model" : MemberOf(why);
    json.Member("message", why);
    json.Member("type", error.type);
    json.Key("param");
    member.empty() ? json.Value(nullptr) : json.Value(member);
    json.Key("code");
    code != nullptr ? json.Value(code) : json.Value(nullptr);
  });
}

std::string BodyOf(ErrorForm form, const absl::Status& status) {
  const std::string why = ErrorMessage(status);
  JsonWriter json;
  json.Object([&] {
    if (form == ErrorForm::kOpenAiAndMessage || form == ErrorForm::kInferenceAndMessage) {
      json.Member("message", why);
      json.Member("detail", why);
    }
    if (form == ErrorForm::kOpenAi || form == ErrorForm::kOpenAiAndMessage) {
      return WriteOpenAi(status, json);
    }
    json.Member("error", why);
    json.Member("error_type", InferenceType(status.code()));
  });
  return json.Take();
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
