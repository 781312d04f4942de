// Rights, and THE table of the right that each method of gRPC takes. The right of a route of HTTP
// is given where the route is added (server/http/router.h).
//
// Threads: pure.
#pragma once

#include "absl/strings/string_view.h"

namespace reprise {

enum class Right {
  kNone,     // health, liveness, readiness: open to all
  kInfer,    // inference, and the calls that a client makes before it
  kObserve,  // recipes, reports, statistics, /v2/overview
  kAdmin,    // calls that change the server for others, or show a model's numbers
  kMetrics,  // /metrics
};

// "infer", "observe", "admin", "metrics"; "none" of kNone.
absl::string_view RightName(Right right);

// `path`: "/inference.GRPCInferenceService/ModelInfer". Methods that are not in the table take
// kInfer, so that an unknown one is answered as such.
Right RightOfRpc(absl::string_view path);

}  // namespace reprise
