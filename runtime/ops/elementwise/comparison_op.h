// Names of comparisons and logic ops.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct EqualOp {
  static constexpr char kName[] = "Equal";
};

struct LessOp {
  static constexpr char kName[] = "Less";
};

struct LessOrEqualOp {
  static constexpr char kName[] = "LessOrEqual";
};

struct GreaterOp {
  static constexpr char kName[] = "Greater";
};

struct GreaterOrEqualOp {
  static constexpr char kName[] = "GreaterOrEqual";
};

struct AndOp {
  static constexpr char kName[] = "And";
};

struct OrOp {
  static constexpr char kName[] = "Or";
};

struct XorOp {
  static constexpr char kName[] = "Xor";
};

struct NotOp {
  static constexpr char kName[] = "Not";
};

}  // namespace reprise
