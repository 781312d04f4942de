// Convolutions.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct ConvOp : NamedOp<"Conv"> {
  enum Input : size_t { kX, kWeight, kBias };

  int64_t group = 1;
  OP_ATTRIBUTES(ConvOp, group)
};

struct FusedConvOp : NamedOp<"reprise.Conv"> {
  enum Input : size_t { kX, kWeight, kBias, kResidual };

  int64_t group = 1;
  std::string activation = "none";
  std::string layout = "first";
  OP_ATTRIBUTES(FusedConvOp, group, activation, layout)
};

struct ConvTransposeOp : NamedOp<"ConvTranspose"> {
  enum Input : size_t { kX, kWeight, kBias };

  int64_t group = 1;
  OP_ATTRIBUTES(ConvTransposeOp, group)
};

struct FusedConvTransposeOp : NamedOp<"reprise.ConvTranspose"> {
  enum Input : size_t { kX, kWeight, kBias };

  int64_t group = 1;
  std::string activation = "none";
  std::string layout = "first";
  OP_ATTRIBUTES(FusedConvTransposeOp, group, activation, layout)
};

struct DeformConvOp : NamedOp<"DeformConv"> {
  enum Input : size_t { kX, kWeight, kOffset, kBias, kMask };

  int64_t group = 1;
  OP_ATTRIBUTES(DeformConvOp, group)
};

struct DeformColumnsOp : NamedOp<"reprise.DeformColumns"> {
  enum Input : size_t { kX, kOffset, kMask };
};

}  // namespace reprise
