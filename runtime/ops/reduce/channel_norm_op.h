// Normalisations of channels.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct BatchNormalizationOp : NamedOp<"BatchNormalization"> {
  enum Input : size_t { kX, kScale, kShift, kMean, kVariance };

  float epsilon = 1e-5f;
  OP_ATTRIBUTES(BatchNormalizationOp, epsilon)
};

struct InstanceNormalizationOp : NamedOp<"InstanceNormalization"> {
  enum Input : size_t { kX, kScale, kBias };

  float epsilon = 1e-5f;
  OP_ATTRIBUTES(InstanceNormalizationOp, epsilon)
};

struct GroupNormalizationOp : NamedOp<"GroupNormalization"> {
  enum Input : size_t { kX, kScale, kBias };

  float epsilon = 1e-5f;
  int64_t num_groups = 0;
  OP_ATTRIBUTES(GroupNormalizationOp, epsilon, num_groups)
};

}  // namespace reprise
