// Conversions between floats and integers with a scale and a zero point.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct QuantizeLinearOp {
  static constexpr char kName[] = "QuantizeLinear";
  enum Input : size_t { kX, kScale, kZeroPoint };

  int64_t axis = 1;
  int64_t block_size = 0;
  int64_t output_dtype = 0;

  static QuantizeLinearOp From(const Attributes& attributes) {
    QuantizeLinearOp op;
    ReadAttribute(attributes, "axis", op.axis);
    ReadAttribute(attributes, "block_size", op.block_size);
    ReadAttribute(attributes, "output_dtype", op.output_dtype);
    return op;
  }
  static QuantizeLinearOp From(const Node& node) { return From(node.attributes); }
};

struct DequantizeLinearOp {
  static constexpr char kName[] = "DequantizeLinear";
  enum Input : size_t { kX, kScale, kZeroPoint };

  int64_t axis = 1;
  int64_t block_size = 0;

  static DequantizeLinearOp From(const Attributes& attributes) {
    DequantizeLinearOp op;
    ReadAttribute(attributes, "axis", op.axis);
    ReadAttribute(attributes, "block_size", op.block_size);
    return op;
  }
  static DequantizeLinearOp From(const Node& node) { return From(node.attributes); }
};

struct FakeQuantizeOp {
  static constexpr char kName[] = "reprise.FakeQuantize";
  enum Input : size_t { kX, kScale, kZeroPoint };

  int64_t axis = 1;
  int64_t block_size = 0;

  static FakeQuantizeOp From(const Attributes& attributes) {
    FakeQuantizeOp op;
    ReadAttribute(attributes, "axis", op.axis);
    ReadAttribute(attributes, "block_size", op.block_size);
    return op;
  }
  static FakeQuantizeOp From(const Node& node) { return From(node.attributes); }
};

struct DynamicQuantizeLinearOp {
  static constexpr char kName[] = "DynamicQuantizeLinear";
  enum Input : size_t { kX };
};

struct SegmentDynamicQuantizeOp {
  static constexpr char kName[] = "reprise.SegmentDynamicQuantizeLinear";
  enum Input : size_t { kX, kSegments };
};

}  // namespace reprise
