// Ensembles of trees of ai.onnx.ml, as reprise.TreeEnsemble and reprise.ClassScores.
#pragma once

#include "runtime/onnx/kit/node_draft.h"

namespace reprise {

NodeRewrite TreeClassifierInSteps, TreeRegressorInSteps;
// Opset 5 of the domain.
NodeRewrite TreeEnsembleInSteps;

}  // namespace reprise
