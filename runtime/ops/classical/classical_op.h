// Classic models.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct TreeEnsembleOp {
  static constexpr char kName[] = "reprise.TreeEnsemble";
  enum Input : size_t { kX, kTrees };
};

struct ClassScoresOp {
  static constexpr char kName[] = "reprise.ClassScores";
  enum Input : size_t { kX };
};

struct SvmScoresOp {
  static constexpr char kName[] = "reprise.SvmScores";
  enum Input : size_t { kDecisions };
};

struct DistancesOp {
  static constexpr char kName[] = "reprise.Distances";
  enum Input : size_t { kX, kY };

  int64_t power = 2;

  static DistancesOp From(const Attributes& attributes) {
    DistancesOp op;
    ReadAttribute(attributes, "power", op.power);
    return op;
  }
  static DistancesOp From(const Node& node) { return From(node.attributes); }
};

struct CategoryIndexOp {
  static constexpr char kName[] = "reprise.CategoryIndex";
  enum Input : size_t { kX, kKeys };

  bool known = false;
  bool text = false;

  static CategoryIndexOp From(const Attributes& attributes) {
    CategoryIndexOp op;
    ReadAttribute(attributes, "known", op.known);
    ReadAttribute(attributes, "text", op.text);
    return op;
  }
  static CategoryIndexOp From(const Node& node) { return From(node.attributes); }
};

}  // namespace reprise
