// Support vector machines of ai.onnx.ml, as steps that are ops of ONNX and of reprise.
#pragma once

#include "absl/status/status.h"
#include "runtime/graph/node.h"
#include "runtime/onnx/kit/node_draft.h"

namespace reprise {

absl::Status SvmRegressorInSteps(NodeDraft& draft, Graph& graph);
absl::Status SvmClassifierInSteps(NodeDraft& draft, Graph& graph);

}  // namespace reprise
