// Indices of extremes, and running sums.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct ArgMaxOp {
  static constexpr char kName[] = "ArgMax";
  enum Input : size_t { kX };

  int64_t axis = 0;
  bool keepdims = true;
  bool select_last_index = false;

  static ArgMaxOp From(const Attributes& attributes) {
    ArgMaxOp op;
    ReadAttribute(attributes, "axis", op.axis);
    ReadAttribute(attributes, "keepdims", op.keepdims);
    ReadAttribute(attributes, "select_last_index", op.select_last_index);
    return op;
  }
  static ArgMaxOp From(const Node& node) { return From(node.attributes); }
};

struct ArgMinOp {
  static constexpr char kName[] = "ArgMin";
  enum Input : size_t { kX };

  int64_t axis = 0;
  bool keepdims = true;
  bool select_last_index = false;

  static ArgMinOp From(const Attributes& attributes) {
    ArgMinOp op;
    ReadAttribute(attributes, "axis", op.axis);
    ReadAttribute(attributes, "keepdims", op.keepdims);
    ReadAttribute(attributes, "select_last_index", op.select_last_index);
    return op;
  }
  static ArgMinOp From(const Node& node) { return From(node.attributes); }
};

struct TopKOp {
  static constexpr char kName[] = "TopK";
  enum Input : size_t { kX, kK };

  int64_t axis = -1;
  bool largest = true;
  bool sorted = true;

  static TopKOp From(const Attributes& attributes) {
    TopKOp op;
    ReadAttribute(attributes, "axis", op.axis);
    ReadAttribute(attributes, "largest", op.largest);
    ReadAttribute(attributes, "sorted", op.sorted);
    return op;
  }
  static TopKOp From(const Node& node) { return From(node.attributes); }
};

struct CumSumOp {
  static constexpr char kName[] = "CumSum";
  enum Input : size_t { kX, kAxis };

  bool exclusive = false;
  bool reverse = false;

  static CumSumOp From(const Attributes& attributes) {
    CumSumOp op;
    ReadAttribute(attributes, "exclusive", op.exclusive);
    ReadAttribute(attributes, "reverse", op.reverse);
    return op;
  }
  static CumSumOp From(const Node& node) { return From(node.attributes); }
};

}  // namespace reprise
