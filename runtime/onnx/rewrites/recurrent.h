// Recurrent layers over quantised weights, in steps that are ops of ONNX.
#pragma once

#include "runtime/onnx/kit/node_draft.h"

namespace reprise {

// com.microsoft.DynamicQuantizeLSTM as an LSTM over the floats that its weights stand for.
//
// onnxruntime's kernel rounds the rows of every product to 256 steps: all of X at once, and the
// hidden state of each time step. Those steps are an approximation for speed that depends on
// batch-mates and lengths; the floats here are exact, so that answers differ by about the error
// of the rounding (a few thousandths of the largest state). INVALID_ARGUMENT for a missing
// required input.
NodeRewrite DynamicQuantizeLstmInSteps;

}  // namespace reprise
