// Names of comparisons and logic ops.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct EqualOp : NamedOp<"Equal"> {};
struct LessOp : NamedOp<"Less"> {};
struct LessOrEqualOp : NamedOp<"LessOrEqual"> {};
struct GreaterOp : NamedOp<"Greater"> {};
struct GreaterOrEqualOp : NamedOp<"GreaterOrEqual"> {};
struct AndOp : NamedOp<"And"> {};
struct OrOp : NamedOp<"Or"> {};
struct XorOp : NamedOp<"Xor"> {};
struct NotOp : NamedOp<"Not"> {};

}  // namespace reprise
