// Where the rows of a padded batch end; see live.h for operands and attributes.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct LiveExtentOp : NamedOp<"reprise.LiveExtent"> {
  enum Input : size_t { kLive };
};

struct LiveFillOp : NamedOp<"reprise.LiveFill"> {
  enum Input : size_t { kX, kExtent };
};

struct LiveMaskOp : NamedOp<"reprise.LiveMask"> {
  enum Input : size_t { kExtent, kSize };
};

struct LiveShareOp : NamedOp<"reprise.LiveShare"> {
  enum Input : size_t { kExtent, kSize };
};

struct LiveCompactOp : NamedOp<"reprise.LiveCompact"> {
  enum Input : size_t { kX, kSizes, kExtents };
};

}  // namespace reprise
