// Windows of signals in steps that are ops of elements.
//
// Each brings `draft` to its last step and adds the others to `graph`. INVALID_ARGUMENT for an
// input that is left out and needed.
#pragma once

#include "absl/status/status.h"
#include "runtime/graph/node.h"
#include "runtime/onnx/kit/node_draft.h"

namespace reprise {

absl::Status BlackmanWindowInSteps(NodeDraft& draft, Graph& graph);
absl::Status HammingWindowInSteps(NodeDraft& draft, Graph& graph);
absl::Status HannWindowInSteps(NodeDraft& draft, Graph& graph);

}  // namespace reprise
