// The masks of an attention that fuse_attention matched, as one operand.
//
// Threads: as the graph's.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/match/attention_match.h"

namespace reprise {

struct AttentionSizes {
  int64_t batch, heads, queries, keys, size, size_v;
};

// Returns whether each mask has a dtype and a shape that CombineMasks takes.
bool MasksFit(const Graph& graph, const AttentionPattern& pattern, const AttentionSizes& sizes);

// Returns one mask operand for all masks; kNone when there are none.
absl::StatusOr<ValueId> CombineMasks(Graph& graph, const AttentionPattern& pattern,
                                     const AttentionSizes& sizes);

}  // namespace reprise
