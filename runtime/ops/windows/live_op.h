// Where the rows of a padded batch end; see live.h for operands and attributes.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct LiveExtentOp {
  static constexpr char kName[] = "reprise.LiveExtent";
  enum Input : size_t { kLive };
};

struct LiveFillOp {
  static constexpr char kName[] = "reprise.LiveFill";
  enum Input : size_t { kX, kExtent };
};

struct LiveMaskOp {
  static constexpr char kName[] = "reprise.LiveMask";
  enum Input : size_t { kExtent, kSize };
};

struct LiveShareOp {
  static constexpr char kName[] = "reprise.LiveShare";
  enum Input : size_t { kExtent, kSize };
};

struct LiveCompactOp {
  static constexpr char kName[] = "reprise.LiveCompact";
  enum Input : size_t { kX, kSizes, kExtents };
};

}  // namespace reprise
