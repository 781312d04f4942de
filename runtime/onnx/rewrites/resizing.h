// Older forms of ops that change the sizes of pictures.
//
// Each brings `draft` to its newest form and adds the other nodes to `graph`.
#pragma once

#include "absl/status/status.h"
#include "runtime/graph/node.h"
#include "runtime/onnx/kit/node_draft.h"

namespace reprise {

absl::Status ResizeAtCorner(NodeDraft& draft, Graph& graph);
absl::Status UpsampleIsResize(NodeDraft& draft, Graph& graph);
absl::Status CenterCropPadIsPad(NodeDraft& draft, Graph& graph);
absl::Status RegionsAtCorner(NodeDraft& draft, Graph& graph);

}  // namespace reprise
