// Names of arithmetic ops, element by element.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct AddOp : NamedOp<"Add"> {};
struct SubOp : NamedOp<"Sub"> {};
struct MulOp : NamedOp<"Mul"> {};
struct DivOp : NamedOp<"Div"> {};
struct PowOp : NamedOp<"Pow"> {};
struct MaxOp : NamedOp<"Max"> {};
struct MinOp : NamedOp<"Min"> {};
struct SumOp : NamedOp<"Sum"> {};
struct MeanOp : NamedOp<"Mean"> {};
struct NegOp : NamedOp<"Neg"> {};
struct AbsOp : NamedOp<"Abs"> {};
struct SqrtOp : NamedOp<"Sqrt"> {};
struct ReciprocalOp : NamedOp<"Reciprocal"> {};
struct ExpOp : NamedOp<"Exp"> {};
struct LogOp : NamedOp<"Log"> {};
struct FloorOp : NamedOp<"Floor"> {};
struct CeilOp : NamedOp<"Ceil"> {};
struct RoundOp : NamedOp<"Round"> {};
struct SignOp : NamedOp<"Sign"> {};
struct ErfOp : NamedOp<"Erf"> {};

struct ModOp : NamedOp<"Mod"> {
  bool fmod = false;
  OP_ATTRIBUTES(ModOp, fmod)
};

}  // namespace reprise
