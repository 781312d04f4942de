// reprise.IntegerConv.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct IntegerConvOp : NamedOp<"reprise.IntegerConv"> {
  enum Input : size_t {
    kX,
    kWeight,
    kXScale,
    kWeightScale,
    kXZero,
    kWeightZero,
    kBias,
    kResidual,
    kYScale,
    kYZero
  };

  int64_t group = 1;
  std::string activation = "none";
  std::string layout = "first";
  OP_ATTRIBUTES(IntegerConvOp, group, activation, layout)
};

}  // namespace reprise
