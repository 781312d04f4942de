// reprise.IntegerConv.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct IntegerConvOp {
  static constexpr char kName[] = "reprise.IntegerConv";
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

  static IntegerConvOp From(const Attributes& attributes) {
    IntegerConvOp op;
    ReadAttribute(attributes, "group", op.group);
    ReadAttribute(attributes, "activation", op.activation);
    ReadAttribute(attributes, "layout", op.layout);
    return op;
  }
  static IntegerConvOp From(const Node& node) { return From(node.attributes); }
};

}  // namespace reprise
