// Windows of signals in steps that are ops of elements.
//
// Each brings `draft` to its last step and adds the others to `graph`. INVALID_ARGUMENT for an
// input that is left out and needed.
#pragma once

#include "runtime/onnx/kit/node_draft.h"

namespace reprise {

NodeRewrite BlackmanWindowInSteps, HammingWindowInSteps, HannWindowInSteps;

}  // namespace reprise
