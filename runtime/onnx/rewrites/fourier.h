// Fourier transforms as products with waves: of frames a convolution, of one axis a matrix product.
//
// Each brings `draft` to its last step and adds the others to `graph`. INVALID_ARGUMENT for an
// input that is left out and needed. Where the waves are more than 64 MB or not known, STFT is
// UNIMPLEMENTED, and DFT stays as it is: its row in runtime/ops has no such limit.
#pragma once

#include "absl/status/status.h"
#include "runtime/graph/node.h"
#include "runtime/onnx/kit/node_draft.h"

namespace reprise {

absl::Status DftInSteps(NodeDraft& draft, Graph& graph);
absl::Status StftInSteps(NodeDraft& draft, Graph& graph);

}  // namespace reprise
