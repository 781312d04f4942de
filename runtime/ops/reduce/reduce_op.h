// Reductions along axes, which operand 1 names.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct ReduceSumOp {
  static constexpr char kName[] = "ReduceSum";
  enum Input : size_t { kX, kAxes };

  bool keepdims = true;

  static ReduceSumOp From(const Attributes& attributes) {
    ReduceSumOp op;
    ReadAttribute(attributes, "keepdims", op.keepdims);
    return op;
  }
  static ReduceSumOp From(const Node& node) { return From(node.attributes); }
};

struct ReduceMeanOp {
  static constexpr char kName[] = "ReduceMean";
  enum Input : size_t { kX, kAxes };

  bool keepdims = true;

  static ReduceMeanOp From(const Attributes& attributes) {
    ReduceMeanOp op;
    ReadAttribute(attributes, "keepdims", op.keepdims);
    return op;
  }
  static ReduceMeanOp From(const Node& node) { return From(node.attributes); }
};

struct ReduceMaxOp {
  static constexpr char kName[] = "ReduceMax";
  enum Input : size_t { kX, kAxes };

  bool keepdims = true;

  static ReduceMaxOp From(const Attributes& attributes) {
    ReduceMaxOp op;
    ReadAttribute(attributes, "keepdims", op.keepdims);
    return op;
  }
  static ReduceMaxOp From(const Node& node) { return From(node.attributes); }
};

struct ReduceMinOp {
  static constexpr char kName[] = "ReduceMin";
  enum Input : size_t { kX, kAxes };

  bool keepdims = true;

  static ReduceMinOp From(const Attributes& attributes) {
    ReduceMinOp op;
    ReadAttribute(attributes, "keepdims", op.keepdims);
    return op;
  }
  static ReduceMinOp From(const Node& node) { return From(node.attributes); }
};

struct ReduceProdOp {
  static constexpr char kName[] = "ReduceProd";
  enum Input : size_t { kX, kAxes };

  bool keepdims = true;

  static ReduceProdOp From(const Attributes& attributes) {
    ReduceProdOp op;
    ReadAttribute(attributes, "keepdims", op.keepdims);
    return op;
  }
  static ReduceProdOp From(const Node& node) { return From(node.attributes); }
};

struct ReduceL1Op {
  static constexpr char kName[] = "ReduceL1";
  enum Input : size_t { kX, kAxes };

  bool keepdims = true;

  static ReduceL1Op From(const Attributes& attributes) {
    ReduceL1Op op;
    ReadAttribute(attributes, "keepdims", op.keepdims);
    return op;
  }
  static ReduceL1Op From(const Node& node) { return From(node.attributes); }
};

struct ReduceL2Op {
  static constexpr char kName[] = "ReduceL2";
  enum Input : size_t { kX, kAxes };

  bool keepdims = true;

  static ReduceL2Op From(const Attributes& attributes) {
    ReduceL2Op op;
    ReadAttribute(attributes, "keepdims", op.keepdims);
    return op;
  }
  static ReduceL2Op From(const Node& node) { return From(node.attributes); }
};

}  // namespace reprise
