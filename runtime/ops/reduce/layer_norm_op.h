// Normalisations of the last dims.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct LayerNormalizationOp : NamedOp<"LayerNormalization"> {
  enum Input : size_t { kX, kGamma, kBeta };

  int64_t axis = -1;
  float epsilon = 1e-5f;
  OP_ATTRIBUTES(LayerNormalizationOp, axis, epsilon)
};

struct RmsNormalizationOp : NamedOp<"RMSNormalization"> {
  enum Input : size_t { kX, kGamma };

  int64_t axis = -1;
  float epsilon = 1e-5f;
  OP_ATTRIBUTES(RmsNormalizationOp, axis, epsilon)
};

struct AddLayerNormOp : NamedOp<"reprise.AddLayerNorm"> {
  enum Input : size_t { kX, kResidual, kGamma, kBeta };

  int64_t axis = -1;
  float epsilon = 1e-5f;
  OP_ATTRIBUTES(AddLayerNormOp, axis, epsilon)
};

struct SkipLayerNormOp : NamedOp<"com.microsoft.SkipLayerNormalization"> {
  enum Input : size_t { kX, kSkip, kGamma, kBeta, kBias };

  float epsilon = 1e-12f;
  OP_ATTRIBUTES(SkipLayerNormOp, epsilon)
};

struct EmbedLayerNormOp : NamedOp<"com.microsoft.EmbedLayerNormalization"> {
  float epsilon = 1e-12f;
  float mask_filter_value = -10000;
  OP_ATTRIBUTES(EmbedLayerNormOp, epsilon, mask_filter_value)
};

struct SkipSimplifiedLayerNormOp : NamedOp<"com.microsoft.SkipSimplifiedLayerNormalization"> {
  enum Input : size_t { kX, kSkip, kGamma, kBias };

  float epsilon = 1e-12f;
  OP_ATTRIBUTES(SkipSimplifiedLayerNormOp, epsilon)
};

}  // namespace reprise
