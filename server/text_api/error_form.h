// Errors in the form of each protocol that texts come by.
#pragma once

#include "absl/status/status.h"
#include "server/http/http_message.h"

namespace reprise {

enum class ErrorForm {
  kOpenAi,     // {"error": {"message", "type", "param", "code"}}
  kInference,  // {"error": why, "error_type": "Validation"}, as text-embeddings-inference has it
  // {"message": why, "detail": why, "error": why, "error_type"}: what clients of Cohere, of Jina
  // and of text-embeddings-inference read, whose paths are one.
  kInferenceAndMessage,
};

// `status` is an error.
HttpReply TextErrorReply(ErrorForm form, const absl::Status& status);

}  // namespace reprise
