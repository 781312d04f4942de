// Softmax and its kin.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct SoftmaxOp {
  static constexpr char kName[] = "Softmax";
  enum Input : size_t { kX };

  int64_t axis = -1;

  static SoftmaxOp From(const Attributes& attributes) {
    SoftmaxOp op;
    ReadAttribute(attributes, "axis", op.axis);
    return op;
  }
  static SoftmaxOp From(const Node& node) { return From(node.attributes); }
};

struct LogSoftmaxOp {
  static constexpr char kName[] = "LogSoftmax";
  enum Input : size_t { kX };

  int64_t axis = -1;

  static LogSoftmaxOp From(const Attributes& attributes) {
    LogSoftmaxOp op;
    ReadAttribute(attributes, "axis", op.axis);
    return op;
  }
  static LogSoftmaxOp From(const Node& node) { return From(node.attributes); }
};

struct HardmaxOp {
  static constexpr char kName[] = "Hardmax";
  enum Input : size_t { kX };

  int64_t axis = -1;

  static HardmaxOp From(const Attributes& attributes) {
    HardmaxOp op;
    ReadAttribute(attributes, "axis", op.axis);
    return op;
  }
  static HardmaxOp From(const Node& node) { return From(node.attributes); }
};

}  // namespace reprise
