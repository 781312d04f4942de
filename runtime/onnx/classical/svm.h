// Support vector machines of ai.onnx.ml, as steps that are ops of ONNX and of reprise.
#pragma once

#include "runtime/onnx/kit/node_draft.h"

namespace reprise {

NodeRewrite SvmRegressorInSteps, SvmClassifierInSteps;

}  // namespace reprise
