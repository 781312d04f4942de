// absl::Status -> grpc::Status, by the error table.
#pragma once

#include <grpcpp/support/status.h>

#include "server/wire/error_table.h"

namespace reprise {

inline grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(ErrorRowOf(status.code()).grpc),
                      ErrorMessage(status));
}

}  // namespace reprise
