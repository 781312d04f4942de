// onnxruntime's attention of decoders, in the steps that it consists of.
#pragma once

#include "absl/status/status.h"
#include "runtime/graph/node.h"
#include "runtime/onnx/kit/node_draft.h"

namespace reprise {

absl::Status GroupQueryAttentionInSteps(NodeDraft& draft, Graph& graph);

}  // namespace reprise
