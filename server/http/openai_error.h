// Errors as clients of OpenAI read them: {"error": {"message", "type", "param", "code"}}.
//
// Threads: pure.
#pragma once

#include "server/http/request_path.h"

namespace reprise {

// Returns whether errors of `path` have this form: it is below /v1, or below /models/NAME/v1, and
// not the V1 inference protocol's /v1/models/NAME:predict.
bool IsOpenAiPath(const RequestPath& path);

struct OpenAiError {
  int status;        // HTTP's
  const char* type;  // the kind of error that clients tell apart
  const char* code;  // null: there is none
};

// Returns the row of `status`, which is 400 or more.
const OpenAiError& OpenAiErrorOf(int status);

}  // namespace reprise
