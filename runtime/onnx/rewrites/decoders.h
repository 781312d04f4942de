// onnxruntime's attention of decoders, in the steps that it consists of.
#pragma once

#include "absl/status/status.h"
#include "runtime/graph/node.h"
#include "runtime/onnx/kit/node_draft.h"

namespace reprise {

absl::Status GroupQueryAttentionInSteps(NodeDraft& draft, Graph& graph);
// Takes q, k and v, or k and v, apart where they are one operand; the op stays.
absl::Status MultiHeadAttentionTakenApart(NodeDraft& draft, Graph& graph);

}  // namespace reprise
