// Ops that read elements at indices that an operand gives.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct GatherOp {
  static constexpr char kName[] = "Gather";
  enum Input : size_t { kX, kPlaces };

  int64_t axis = 0;

  static GatherOp From(const Attributes& attributes) {
    GatherOp op;
    ReadAttribute(attributes, "axis", op.axis);
    return op;
  }
  static GatherOp From(const Node& node) { return From(node.attributes); }
};

struct GatherElementsOp {
  static constexpr char kName[] = "GatherElements";
  enum Input : size_t { kX, kPlaces };

  int64_t axis = 0;

  static GatherElementsOp From(const Attributes& attributes) {
    GatherElementsOp op;
    ReadAttribute(attributes, "axis", op.axis);
    return op;
  }
  static GatherElementsOp From(const Node& node) { return From(node.attributes); }
};

struct GatherNdOp {
  static constexpr char kName[] = "GatherND";
  enum Input : size_t { kX, kPlaces };

  int64_t batch_dims = 0;

  static GatherNdOp From(const Attributes& attributes) {
    GatherNdOp op;
    ReadAttribute(attributes, "batch_dims", op.batch_dims);
    return op;
  }
  static GatherNdOp From(const Node& node) { return From(node.attributes); }
};

struct OneHotOp {
  static constexpr char kName[] = "OneHot";
  enum Input : size_t { kPlaces, kDepth, kValues };
};

// Operands in pairs: a table, and the indices of its rows.
struct EmbeddingSumOp {
  static constexpr char kName[] = "reprise.EmbeddingSum";
};

struct CheckRangeOp {
  static constexpr char kName[] = "reprise.CheckRange";
  enum Input : size_t { kX };

  int64_t low = 0;
  int64_t high = 0;

  static CheckRangeOp From(const Attributes& attributes) {
    CheckRangeOp op;
    ReadAttribute(attributes, "low", op.low);
    ReadAttribute(attributes, "high", op.high);
    return op;
  }
  static CheckRangeOp From(const Node& node) { return From(node.attributes); }
};

}  // namespace reprise
