// THE table of rights: what each method of gRPC and each path of HTTP takes.
//
// Threads: pure.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace reprise {

enum class Right {
  kNone,     // health, liveness, readiness: whoever reaches the port
  kInfer,    // inference, and what a client asks of a model before it
  kObserve,  // recipes, reports, statistics, the status page
  kAdmin,    // what changes the server for others, or shows a model's numbers
  kMetrics,  // /metrics
};

// "infer", "observe", "admin", "metrics"; "none" of kNone.
absl::string_view RightName(Right right);

// `path`: "/inference.GRPCInferenceService/ModelInfer". Methods that are not in the table take
// kInfer, so that an unknown one is answered as such.
Right RightOfRpc(absl::string_view path);

// `path`: "/v2/models/bert/infer", without a query, percent-decoded or not. Paths that are not in
// the table take kInfer.
Right RightOfHttp(absl::string_view method, absl::string_view path);

// The rows, for tests: methods with their paths, then routes ("POST /v2/models/*/infer").
std::vector<std::string> RightTableRows();

}  // namespace reprise
