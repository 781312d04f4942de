// reprise.RelativeAttention.
// See typed_op.h.
#pragma once

#include <limits>

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct RelativeAttentionOp {
  static constexpr char kName[] = "reprise.RelativeAttention";
  enum Input : size_t {
    kQueries,
    kKeys,
    kValues,
    kMask,
    kQueryMask,
    kQueryTable,
    kQueryPlaces,
    kKeyTable,
    kKeyPlaces,
    kSegments,
    kPlaces
  };

  int64_t num_heads = 0;
  float scale = 1;
  bool nan_to_zero = false;
  float lowest = -std::numeric_limits<float>::infinity();
  int64_t longest = 0;
  bool one_order = false;  // One or a few queries are summed like many.

  static RelativeAttentionOp From(const Attributes& attributes) {
    RelativeAttentionOp op;
    ReadAttribute(attributes, "num_heads", op.num_heads);
    ReadAttribute(attributes, "scale", op.scale);
    ReadAttribute(attributes, "nan_to_zero", op.nan_to_zero);
    ReadAttribute(attributes, "lowest", op.lowest);
    ReadAttribute(attributes, "longest", op.longest);
    ReadAttribute(attributes, "one_order", op.one_order);
    return op;
  }
  static RelativeAttentionOp From(const Node& node) { return From(node.attributes); }
};

}  // namespace reprise
