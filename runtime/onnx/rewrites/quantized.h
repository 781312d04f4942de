// Rewrites the ops over quantised tensors of onnxruntime's quantiser and optimiser as ops of ONNX:
// dequantise, compute in float, quantise; integer products stay integer.
//
// Each brings `draft` to its last step and adds the others to `graph`. INVALID_ARGUMENT for an
// input that is left out and needed, UNIMPLEMENTED for forms that have no steps.
#pragma once

#include "runtime/onnx/kit/node_draft.h"

namespace reprise {

NodeRewrite QLinearAddInSteps, QLinearMulInSteps, QLinearSigmoidInSteps, QLinearLeakyReluInSteps,
    QLinearSoftmaxInSteps, QLinearConcatInSteps, QLinearWhereInSteps, QLinearConvInSteps,
    ConvIntegerInSteps, QLinearAveragePoolInSteps, QLinearGlobalAveragePoolInSteps, QGemmInSteps,
    MatMulIntegerToFloatInSteps, DynamicQuantizeMatMulInSteps, QEmbedLayerNormInSteps;
// Weights of a few bits, with a factor for each block: see reprise.DequantizeBits.
NodeRewrite MatMulNBitsInSteps;

// Blocks, as gguf/graph_writer.h writes them: see reprise.StoredFloats.
NodeRewrite GgmlDequantizeIsStoredFloats, GatherBlockQuantizedInSteps;

}  // namespace reprise
