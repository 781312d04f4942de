// Branches and loops; see branch.h and loop.h for their operands.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct IfOp {
  static constexpr char kName[] = "If";
  enum Input : size_t { kCondition };
};

struct LoopOp {
  static constexpr char kName[] = "Loop";
  enum Input : size_t { kTripCount, kCondition, kFirstCarried };

  int64_t loop = 0;
  int64_t carried = 0;

  static LoopOp From(const Attributes& attributes) {
    LoopOp op;
    ReadAttribute(attributes, "loop", op.loop);
    ReadAttribute(attributes, "carried", op.carried);
    return op;
  }
  static LoopOp From(const Node& node) { return From(node.attributes); }
};

struct LoopStepOp {
  static constexpr char kName[] = "reprise.LoopStep";

  int64_t loop = 0;

  static LoopStepOp From(const Attributes& attributes) {
    LoopStepOp op;
    ReadAttribute(attributes, "loop", op.loop);
    return op;
  }
  static LoopStepOp From(const Node& node) { return From(node.attributes); }
};

}  // namespace reprise
