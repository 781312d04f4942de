// The capture passes of steps over pages.
#pragma once

#include <memory>
#include <optional>

#include "runtime/passes/kit/pass.h"

namespace reprise {

// Turns reprise.Attention whose keys and values are a reprise.CachedRows and new rows after it into
// reprise.PagedAttention, by the description of pages in the CachedRows; where they are a
// CachedRows of an encoder's result and nothing else, into reprise.PagedCrossAttention. It runs
// after attend_by_head, which finds the heads that queries share. Inert where a graph has no
// reprise.CachedRows.
std::unique_ptr<Pass> PageAttention();

// Divides the products with weights and the heads of a step among ranks: this rank keeps its part,
// and reprise.AllReduce and reprise.AllGather exchange what all need. It runs after page_attention.
// UNIMPLEMENTED, naming the attention, where heads of keys are fewer than ranks.
// ShardProducts has one rank: it does nothing.
std::unique_ptr<Pass> ShardProducts();
std::unique_ptr<Pass> ShardProductsAmong(const Shard& shard);

// Cuts a step into stages of layers, one a rank: this rank keeps the nodes of its stage, and
// reprise.Broadcast hands on the values between them; all ranks get the scores. It runs in the
// place of shard_products. UNIMPLEMENTED where layers are fewer than ranks, or no stages. CutStages
// has one rank: it does nothing.
std::unique_ptr<Pass> CutStages();
std::unique_ptr<Pass> CutStagesAmong(const Shard& shard);

// The cache after an operand of attention.
struct CachedOperand {
  ValueId rows = kNone;   // the new ones, [tokens, heads, 1, size]; kNone: an encoder's, all cached
  NodeId cached = kNone;  // the reprise.CachedRows
  bool expanded = false;  // heads are repeated on the way
};
std::optional<CachedOperand> FindCached(const Graph& graph, ValueId operand);

}  // namespace reprise
