// Ops that join several others, rewritten as those: the fusions of onnxruntime's optimiser,
// and ONNX's own normalisations.
//
// Each brings `draft` to its last step and adds the others to `graph`. INVALID_ARGUMENT for an
// input that is left out and needed, UNIMPLEMENTED for forms that have no steps.
#pragma once

#include "absl/status/status.h"
#include "runtime/graph/node.h"
#include "runtime/onnx/kit/node_draft.h"

namespace reprise {

absl::Status CDistInSteps(NodeDraft& draft, Graph& graph);
absl::Status FusedConvInSteps(NodeDraft& draft, Graph& graph);
absl::Status FusedGemmInSteps(NodeDraft& draft, Graph& graph);
absl::Status LpNormalizationInSteps(NodeDraft& draft, Graph& graph);
absl::Status MeanVarianceInSteps(NodeDraft& draft, Graph& graph);
absl::Status BatchStatisticsInSteps(NodeDraft& draft, Graph& graph);

}  // namespace reprise
