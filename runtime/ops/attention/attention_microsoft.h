// onnxruntime's fused attention: projection of q, k and v inside the op; and its embedding layer.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

Rule MicrosoftAttentionRule, QAttentionRule, EmbedLayerNormRule;
Kernel MicrosoftAttentionKernel, QAttentionKernel, EmbedLayerNormKernel;

}  // namespace reprise::ops
