// absl::Status -> a reply over HTTP, by the error table.
#pragma once

#include "absl/status/status.h"
#include "server/core/error_table.h"
#include "server/http/http_message.h"

namespace reprise {

// `status` is an error.
inline HttpReply StatusReply(const absl::Status& status) {
  return ErrorReply(ErrorRowOf(status.code()).http, ErrorMessage(status));
}

}  // namespace reprise
