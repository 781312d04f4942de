// absl::Status -> a reply over HTTP, by the error table.
#pragma once

#include "absl/status/status.h"
#include "server/http/http_message.h"
#include "server/wire/error_table.h"

namespace reprise {

// `status` is an error.
inline HttpReply StatusReply(const absl::Status& status) {
  return ErrorReply(ErrorRowOf(status.code()).http, ErrorMessage(status));
}

}  // namespace reprise
