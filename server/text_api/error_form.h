// Errors in the form of each protocol that texts come by.
#pragma once

#include "absl/status/status.h"
#include "server/http/http_message.h"

namespace reprise {

enum class ErrorForm {
  kOpenAi,     // {"error": {"message", "type", "param", "code"}}
  kInference,  // {"error": why, "error_type": "Validation"}, as text-embeddings-inference has it
  // {"message": why, "detail": why, "error": why, "error_type"}: read by clients of Cohere, of
  // Jina and of text-embeddings-inference, whose paths are one.
  kInferenceAndMessage,
  // {"message": why, "detail": why, "error": {...}}: below /v1, where clients of Cohere and
  // Jina read it too.
  kOpenAiAndMessage,
};

// Returns the form of errors at `path` of a face whose errors are `form`: below /v1 they are
// OpenAI's.
ErrorForm FormAt(const RequestPath& path, ErrorForm form);

// `status` is an error.
HttpReply TextErrorReply(ErrorForm form, const absl::Status& status);

}  // namespace reprise
