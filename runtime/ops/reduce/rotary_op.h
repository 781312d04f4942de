// Rotary positions.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct RotaryOp : NamedOp<"reprise.Rotary"> {
  enum Input : size_t { kX, kCosine, kSine };
};

struct RotaryEmbeddingOp : NamedOp<"RotaryEmbedding"> {};
struct MicrosoftRotaryEmbeddingOp : NamedOp<"com.microsoft.RotaryEmbedding"> {};

}  // namespace reprise
