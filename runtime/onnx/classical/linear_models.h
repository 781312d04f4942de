// Linear models of ai.onnx.ml, and the ops that make their features, as steps that are ops of ONNX.
#pragma once

#include "runtime/onnx/kit/node_draft.h"

namespace reprise {

NodeRewrite LinearRegressorInSteps, LinearClassifierInSteps, ScalerInSteps, NormalizerInSteps,
    ImputerInSteps, BinarizerInSteps;

}  // namespace reprise
