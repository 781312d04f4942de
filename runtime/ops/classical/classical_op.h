// Classic models.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct TreeEnsembleOp : NamedOp<"reprise.TreeEnsemble"> {
  enum Input : size_t { kX, kTrees };
};

struct ClassScoresOp : NamedOp<"reprise.ClassScores"> {
  enum Input : size_t { kX };
};

struct SvmScoresOp : NamedOp<"reprise.SvmScores"> {
  enum Input : size_t { kDecisions };
};

struct DistancesOp : NamedOp<"reprise.Distances"> {
  enum Input : size_t { kX, kY };

  int64_t power = 2;
  OP_ATTRIBUTES(DistancesOp, power)
};

struct CategoryIndexOp : NamedOp<"reprise.CategoryIndex"> {
  enum Input : size_t { kX, kKeys };

  bool known = false;
  bool text = false;
  OP_ATTRIBUTES(CategoryIndexOp, known, text)
};

}  // namespace reprise
