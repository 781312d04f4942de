// Ops that join several others, rewritten as those: the fusions of onnxruntime's optimiser,
// and ONNX's own normalisations.
//
// Each brings `draft` to its last step and adds the others to `graph`. INVALID_ARGUMENT for an
// input that is left out and needed, UNIMPLEMENTED for forms that have no steps.
#pragma once

#include "runtime/onnx/kit/node_draft.h"

namespace reprise {

NodeRewrite CDistInSteps, FusedConvInSteps, FusedGemmInSteps, LpNormalizationInSteps,
    MeanVarianceInSteps, BatchStatisticsInSteps;

}  // namespace reprise
