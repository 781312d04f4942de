// Ops over packed tokens.
// See typed_op.h.
#pragma once

#include <limits>

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct SegmentAttentionOp {
  static constexpr char kName[] = "reprise.SegmentAttention";
  enum Input : size_t { kQueries, kKeys, kValues, kMask, kBias, kSegments, kPlaces };

  int64_t num_heads = 0;
  float scale = 1;
  bool nan_to_zero = false;
  bool packed_qkv = false;
  float lowest = -std::numeric_limits<float>::infinity();
  int64_t longest = 0;

  static SegmentAttentionOp From(const Attributes& attributes) {
    SegmentAttentionOp op;
    ReadAttribute(attributes, "num_heads", op.num_heads);
    ReadAttribute(attributes, "scale", op.scale);
    ReadAttribute(attributes, "nan_to_zero", op.nan_to_zero);
    ReadAttribute(attributes, "packed_qkv", op.packed_qkv);
    ReadAttribute(attributes, "lowest", op.lowest);
    ReadAttribute(attributes, "longest", op.longest);
    return op;
  }
  static SegmentAttentionOp From(const Node& node) { return From(node.attributes); }
};

struct SegmentReduceOp {
  static constexpr char kName[] = "reprise.SegmentReduce";
  enum Input : size_t { kX, kSegments };

  std::string reduction = "sum";

  static SegmentReduceOp From(const Attributes& attributes) {
    SegmentReduceOp op;
    ReadAttribute(attributes, "reduction", op.reduction);
    return op;
  }
  static SegmentReduceOp From(const Node& node) { return From(node.attributes); }
};

struct SegmentSpreadOp {
  static constexpr char kName[] = "reprise.SegmentSpread";
  enum Input : size_t { kX, kSegments, kTokens };
};

struct SegmentPlaceOp {
  static constexpr char kName[] = "reprise.SegmentPlace";
  enum Input : size_t { kX, kSegments };

  bool largest = true;
  bool select_last_index = false;

  static SegmentPlaceOp From(const Attributes& attributes) {
    SegmentPlaceOp op;
    ReadAttribute(attributes, "largest", op.largest);
    ReadAttribute(attributes, "select_last_index", op.select_last_index);
    return op;
  }
  static SegmentPlaceOp From(const Node& node) { return From(node.attributes); }
};

struct SegmentPickOp {
  static constexpr char kName[] = "reprise.SegmentPick";
  enum Input : size_t { kX, kPlaces, kSegments };
};

struct SegmentCumSumOp {
  static constexpr char kName[] = "reprise.SegmentCumSum";
  enum Input : size_t { kX, kSegments };

  bool exclusive = false;
  bool reverse = false;

  static SegmentCumSumOp From(const Attributes& attributes) {
    SegmentCumSumOp op;
    ReadAttribute(attributes, "exclusive", op.exclusive);
    ReadAttribute(attributes, "reverse", op.reverse);
    return op;
  }
  static SegmentCumSumOp From(const Node& node) { return From(node.attributes); }
};

}  // namespace reprise
