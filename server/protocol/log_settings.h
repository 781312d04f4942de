// The log settings of the protocol: the parts of the log that are written, told and changed while
// serving.
//
//   log_info, log_warning, log_error   lines of this level are written
//   log_verbose_level                  1 and above: debug lines of every module as well
//   log_format, log_file               told, and not changed here
//   reprise.log_level                  all of it: "info,capture=debug", as --log-level
#pragma once

#include "absl/status/statusor.h"
#include "proto/grpc_service.pb.h"
#include "server/config/log_switch.h"

namespace reprise {

// Applies the settings of the request, all of it or nothing, and returns the resulting ones.
// INVALID_ARGUMENT names a setting that does not exist or a value of the wrong kind, UNIMPLEMENTED
// one that cannot be changed while the server serves.
absl::StatusOr<inference::LogSettingsResponse> AnswerLogSettings(
    const inference::LogSettingsRequest& request, LogSwitch& log);

}  // namespace reprise
