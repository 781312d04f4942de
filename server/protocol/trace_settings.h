// The trace settings of the protocol: which requests are traced, told and changed while serving.
//
//   trace_level   ["TIMESTAMPS"]: requests are traced; ["OFF"]: none is
//   trace_rate    N: one of N requests, where the caller does not decide
//   trace_count   traces that are still begun; -1: no limit
//   trace_mode    "opentelemetry"; told, as trace_file and log_frequency are, and not changed here
//
// They hold for all models together: settings of one model are told, and not changed.
#pragma once

#include "absl/status/statusor.h"
#include "proto/grpc_service.pb.h"
#include "server/repository/repository.h"
#include "server/tracing/tracer.h"

namespace reprise {

// Applies the settings of the request, all of it or nothing, and returns the resulting ones. A
// setting without a value becomes its value at the start. `tracer`: null without --trace-endpoint.
// Errors: INVALID_ARGUMENT names the setting and the value; NOT_FOUND the model; UNIMPLEMENTED a
// setting that cannot be changed; FAILED_PRECONDITION where there is nothing to trace with.
absl::StatusOr<inference::TraceSettingResponse> AnswerTraceSettings(
    const inference::TraceSettingRequest& request, const Repository& repository, Tracer* tracer);

}  // namespace reprise
