// Rotary position embeddings: RotaryEmbedding (opset 23), com.microsoft.RotaryEmbedding, and the
// forms that exporters make of them.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

Rule RotaryEmbeddingRule, MicrosoftRotaryEmbeddingRule;
Kernel RotaryEmbeddingKernel, MicrosoftRotaryEmbeddingKernel;

// reprise.Rotary(x, cosine, sine) over the last dim, of an even size: x * cosine + turned * sine,
// where `turned` has the second half of x, negated, before the first. The tables broadcast to x and
// have its last dim.
Rule RotaryRule;
Kernel RotaryKernel;

}  // namespace reprise::ops
