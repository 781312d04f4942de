// The passes of a capture, with a line of the debug log for each of them.
#pragma once

#include "absl/status/status.h"
#include "runtime/base/debug_log.h"
#include "runtime/graph/node.h"
#include "runtime/passes/kit/pass.h"

namespace reprise {

// Runs RunCapturePasses as a phase. Where `debug` (null: no log) wants lines of passes, each says
// how many nodes it left, how long it took, and of which ops there are more or fewer now.
absl::Status RunPassesLogged(Graph& graph, PipelineOptions passes, DebugLog* debug);

}  // namespace reprise
