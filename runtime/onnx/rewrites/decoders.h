// onnxruntime's attention of decoders, in the steps that it consists of.
#pragma once

#include "runtime/onnx/kit/node_draft.h"

namespace reprise {

NodeRewrite GroupQueryAttentionInSteps;
// Takes q, k and v, or k and v, apart where they are one operand; the op stays.
NodeRewrite MultiHeadAttentionTakenApart;

}  // namespace reprise
