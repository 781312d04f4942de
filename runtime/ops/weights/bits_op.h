// Weights of a few bits.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct DequantizeBitsOp : NamedOp<"reprise.DequantizeBits"> {
  enum Input : size_t { kValues, kScales, kZeroPoints };

  int64_t k = 0;
  int64_t block_size = 0;
  int64_t bits = 4;
  OP_ATTRIBUTES_NAMED(DequantizeBitsOp, "K, block_size, bits", k, block_size, bits)
};

struct UnpackNibblesOp : NamedOp<"reprise.UnpackNibbles"> {
  enum Input : size_t { kValues };

  bool is_signed = false;
  OP_ATTRIBUTES_NAMED(UnpackNibblesOp, "signed", is_signed)
};

}  // namespace reprise
