// Ops over packed tokens.
// See typed_op.h.
#pragma once

#include <limits>

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct SegmentAttentionOp : NamedOp<"reprise.SegmentAttention"> {
  enum Input : size_t { kQueries, kKeys, kValues, kMask, kBias, kSegments, kPlaces };

  int64_t num_heads = 0;
  float scale = 1;
  bool nan_to_zero = false;
  bool packed_qkv = false;
  float lowest = -std::numeric_limits<float>::infinity();
  int64_t longest = 0;
  OP_ATTRIBUTES(SegmentAttentionOp, num_heads, scale, nan_to_zero, packed_qkv, lowest, longest)
};

struct SegmentReduceOp : NamedOp<"reprise.SegmentReduce"> {
  enum Input : size_t { kX, kSegments };

  std::string reduction = "sum";
  OP_ATTRIBUTES(SegmentReduceOp, reduction)
};

struct SegmentSpreadOp : NamedOp<"reprise.SegmentSpread"> {
  enum Input : size_t { kX, kSegments, kTokens };
};

struct SegmentPlaceOp : NamedOp<"reprise.SegmentPlace"> {
  enum Input : size_t { kX, kSegments };

  bool largest = true;
  bool select_last_index = false;
  OP_ATTRIBUTES(SegmentPlaceOp, largest, select_last_index)
};

struct SegmentPickOp : NamedOp<"reprise.SegmentPick"> {
  enum Input : size_t { kX, kPlaces, kSegments };
};

struct SegmentCumSumOp : NamedOp<"reprise.SegmentCumSum"> {
  enum Input : size_t { kX, kSegments };

  bool exclusive = false;
  bool reverse = false;
  OP_ATTRIBUTES(SegmentCumSumOp, exclusive, reverse)
};

}  // namespace reprise
