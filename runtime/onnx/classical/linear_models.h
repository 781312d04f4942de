// Linear models of ai.onnx.ml, and the ops that make their features, as steps that are ops of ONNX.
#pragma once

#include "absl/status/status.h"
#include "runtime/graph/node.h"
#include "runtime/onnx/kit/node_draft.h"

namespace reprise {

absl::Status LinearRegressorInSteps(NodeDraft& draft, Graph& graph);
absl::Status LinearClassifierInSteps(NodeDraft& draft, Graph& graph);
absl::Status ScalerInSteps(NodeDraft& draft, Graph& graph);
absl::Status NormalizerInSteps(NodeDraft& draft, Graph& graph);
absl::Status ImputerInSteps(NodeDraft& draft, Graph& graph);
absl::Status BinarizerInSteps(NodeDraft& draft, Graph& graph);

}  // namespace reprise
