// Attention as ONNX (opset 23) and onnxruntime's MultiHeadAttention define it: q, k and v given.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

Rule OnnxAttentionRule, MultiHeadAttentionRule;
Kernel OnnxAttentionKernel, MultiHeadAttentionKernel;

}  // namespace reprise::ops
