// reprise.RelativeAttention.
// See typed_op.h.
#pragma once

#include <limits>

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct RelativeAttentionOp : NamedOp<"reprise.RelativeAttention"> {
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
  OP_ATTRIBUTES(RelativeAttentionOp, num_heads, scale, nan_to_zero, lowest, longest, one_order)
};

}  // namespace reprise
