// Ops of decoders with keys and values in pages; see paged.h.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct CachedRowsOp : NamedOp<"reprise.CachedRows"> {
  enum Input : size_t { kTokens };
};

struct PagedAttentionOp : NamedOp<"reprise.PagedAttention"> {
  enum Input : size_t { kQueries, kKeys, kValues, kPositions, kTables, kSinks };
};

struct PagedCrossAttentionOp : NamedOp<"reprise.PagedCrossAttention"> {
  enum Input : size_t { kQueries, kLengths, kTables };
};

}  // namespace reprise
