// Conversions between floats and integers with a scale and a zero point.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct QuantizeLinearOp : NamedOp<"QuantizeLinear"> {
  enum Input : size_t { kX, kScale, kZeroPoint };

  int64_t axis = 1;
  int64_t block_size = 0;
  int64_t output_dtype = 0;
  OP_ATTRIBUTES(QuantizeLinearOp, axis, block_size, output_dtype)
};

struct DequantizeLinearOp : NamedOp<"DequantizeLinear"> {
  enum Input : size_t { kX, kScale, kZeroPoint };

  int64_t axis = 1;
  int64_t block_size = 0;
  OP_ATTRIBUTES(DequantizeLinearOp, axis, block_size)
};

struct FakeQuantizeOp : NamedOp<"reprise.FakeQuantize"> {
  enum Input : size_t { kX, kScale, kZeroPoint };

  int64_t axis = 1;
  int64_t block_size = 0;
  OP_ATTRIBUTES(FakeQuantizeOp, axis, block_size)
};

struct DynamicQuantizeLinearOp : NamedOp<"DynamicQuantizeLinear"> {
  enum Input : size_t { kX };
};

struct SegmentDynamicQuantizeOp : NamedOp<"reprise.SegmentDynamicQuantizeLinear"> {
  enum Input : size_t { kX, kSegments };
};

}  // namespace reprise
