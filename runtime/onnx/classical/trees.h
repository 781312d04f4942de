// Ensembles of trees of ai.onnx.ml, as reprise.TreeEnsemble and reprise.ClassScores.
#pragma once

#include "runtime/onnx/kit/node_draft.h"

namespace reprise {

absl::Status TreeClassifierInSteps(NodeDraft& draft, Graph& graph);
absl::Status TreeRegressorInSteps(NodeDraft& draft, Graph& graph);
// Opset 5 of the domain.
absl::Status TreeEnsembleInSteps(NodeDraft& draft, Graph& graph);

}  // namespace reprise
