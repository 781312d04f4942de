// Rights, and THE table of what each method of gRPC takes. What a route of HTTP takes stands where
// the route is added (server/http/router.h).
//
// Threads: pure.
#pragma once

#include "absl/strings/string_view.h"

namespace reprise {

enum class Right {
  kNone,     // health, liveness, readiness: whoever reaches the port
  kInfer,    // inference, and what a client asks of a model before it
  kObserve,  // recipes, reports, statistics, /v2/overview
  kAdmin,    // what changes the server for others, or shows a model's numbers
  kMetrics,  // /metrics
};

// "infer", "observe", "admin", "metrics"; "none" of kNone.
absl::string_view RightName(Right right);

// `path`: "/inference.GRPCInferenceService/ModelInfer". Methods that are not in the table take
// kInfer, so that an unknown one is answered as such.
Right RightOfRpc(absl::string_view path);

}  // namespace reprise
