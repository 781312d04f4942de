// Fourier transforms as products with waves: of frames a convolution, of one axis a matrix product.
//
// Each brings `draft` to its last step and adds the others to `graph`. INVALID_ARGUMENT for an
// input that is left out and needed. Where the waves are more than 64 MB or not known, STFT is
// UNIMPLEMENTED, and DFT stays as it is: its row in runtime/ops has no such limit.
#pragma once

#include "runtime/onnx/kit/node_draft.h"

namespace reprise {

NodeRewrite DftInSteps, StftInSteps;

}  // namespace reprise
