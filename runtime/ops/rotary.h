// Rotary position embeddings: RotaryEmbedding (opset 23) and com.microsoft.RotaryEmbedding.
#pragma once

#include "runtime/ops/infer.h"

namespace reprise::ops {

Rule RotaryEmbeddingRule, MicrosoftRotaryEmbeddingRule;
Kernel RotaryEmbeddingKernel, MicrosoftRotaryEmbeddingKernel;

}  // namespace reprise::ops
