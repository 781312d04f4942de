// Rotary positions.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct RotaryOp {
  static constexpr char kName[] = "reprise.Rotary";
  enum Input : size_t { kX, kCosine, kSine };
};

struct RotaryEmbeddingOp {
  static constexpr char kName[] = "RotaryEmbedding";
};

struct MicrosoftRotaryEmbeddingOp {
  static constexpr char kName[] = "com.microsoft.RotaryEmbedding";
};

}  // namespace reprise
