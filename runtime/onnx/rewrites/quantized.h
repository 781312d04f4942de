// Rewrites the ops over quantised tensors of onnxruntime's quantiser and optimiser as ops of ONNX:
// dequantise, compute in float, quantise; integer products stay integer.
//
// Each brings `draft` to its last step and adds the others to `graph`. INVALID_ARGUMENT for an
// input that is left out and needed, UNIMPLEMENTED for forms that have no steps.
#pragma once

#include "absl/status/status.h"
#include "runtime/graph/node.h"
#include "runtime/onnx/kit/node_draft.h"

namespace reprise {

absl::Status QLinearAddInSteps(NodeDraft& draft, Graph& graph);
absl::Status QLinearMulInSteps(NodeDraft& draft, Graph& graph);
absl::Status QLinearSigmoidInSteps(NodeDraft& draft, Graph& graph);
absl::Status QLinearLeakyReluInSteps(NodeDraft& draft, Graph& graph);
absl::Status QLinearSoftmaxInSteps(NodeDraft& draft, Graph& graph);
absl::Status QLinearConcatInSteps(NodeDraft& draft, Graph& graph);
absl::Status QLinearWhereInSteps(NodeDraft& draft, Graph& graph);
absl::Status QLinearConvInSteps(NodeDraft& draft, Graph& graph);
absl::Status ConvIntegerInSteps(NodeDraft& draft, Graph& graph);
absl::Status QLinearAveragePoolInSteps(NodeDraft& draft, Graph& graph);
absl::Status QLinearGlobalAveragePoolInSteps(NodeDraft& draft, Graph& graph);
absl::Status QGemmInSteps(NodeDraft& draft, Graph& graph);
absl::Status MatMulIntegerToFloatInSteps(NodeDraft& draft, Graph& graph);
absl::Status DynamicQuantizeMatMulInSteps(NodeDraft& draft, Graph& graph);
absl::Status QEmbedLayerNormInSteps(NodeDraft& draft, Graph& graph);
// Weights of a few bits, with a factor for each block: see reprise.DequantizeBits.
absl::Status MatMulNBitsInSteps(NodeDraft& draft, Graph& graph);

// Blocks, as gguf/graph_writer.h writes them: see reprise.StoredFloats.
absl::Status GgmlDequantizeIsStoredFloats(NodeDraft& draft, Graph& graph);
absl::Status GatherBlockQuantizedInSteps(NodeDraft& draft, Graph& graph);

}  // namespace reprise
