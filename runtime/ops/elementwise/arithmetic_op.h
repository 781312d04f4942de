// Names of arithmetic ops, element by element.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct AddOp {
  static constexpr char kName[] = "Add";
};

struct SubOp {
  static constexpr char kName[] = "Sub";
};

struct MulOp {
  static constexpr char kName[] = "Mul";
};

struct DivOp {
  static constexpr char kName[] = "Div";
};

struct PowOp {
  static constexpr char kName[] = "Pow";
};

struct MaxOp {
  static constexpr char kName[] = "Max";
};

struct MinOp {
  static constexpr char kName[] = "Min";
};

struct SumOp {
  static constexpr char kName[] = "Sum";
};

struct MeanOp {
  static constexpr char kName[] = "Mean";
};

struct NegOp {
  static constexpr char kName[] = "Neg";
};

struct AbsOp {
  static constexpr char kName[] = "Abs";
};

struct SqrtOp {
  static constexpr char kName[] = "Sqrt";
};

struct ReciprocalOp {
  static constexpr char kName[] = "Reciprocal";
};

struct ExpOp {
  static constexpr char kName[] = "Exp";
};

struct LogOp {
  static constexpr char kName[] = "Log";
};

struct FloorOp {
  static constexpr char kName[] = "Floor";
};

struct CeilOp {
  static constexpr char kName[] = "Ceil";
};

struct RoundOp {
  static constexpr char kName[] = "Round";
};

struct SignOp {
  static constexpr char kName[] = "Sign";
};

struct ErfOp {
  static constexpr char kName[] = "Erf";
};

struct ModOp {
  static constexpr char kName[] = "Mod";

  bool fmod = false;

  static ModOp From(const Attributes& attributes) {
    ModOp op;
    ReadAttribute(attributes, "fmod", op.fmod);
    return op;
  }
  static ModOp From(const Node& node) { return From(node.attributes); }
};

}  // namespace reprise
