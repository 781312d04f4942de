// Attention whose scores depend on the distance of two positions, by the contents of query and key.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// reprise.RelativeAttention(q, k, v, mask?, query_mask?, q_table?, q_places?, k_table?, k_places?,
// segments?, places?) {num_heads, scale, nan_to_zero, lowest?, longest?}
//
//   score[i][j] = scale q_i k_j + q_i q_table[:, q_places[i - j]] + k_j k_table[:, k_places[j - i]]
//
// Each head has its scores; the rest is as in reprise.Attention: q, k [B, S, H*D], v [B, S, H*Dv]
// -> [B, S, H*Dv], with a mask that is added (float32) or keeps (bool), broadcast to [B, H, S, S].
//
// With `segments` (segment.h) q, k, v are [T, ...] and each segment attends to itself alone: `mask`
// [T] is added for each key and `query_mask` [T] for each query, both float32; the sum of the two
// is no lower than `lowest`. `longest`: the most tokens of a segment. With `places` i64 [N] each
// segment's only query stands there among its tokens: q, `query_mask` and the result have a row a
// segment, the latter 0 for an empty one.
//
// A table is float32 [H, D, P]. Its places, int64 [2 * L - 1], give the column for each distance:
// element L - 1 is for distance 0; beyond L the first and the last hold. A column out of range is
// clamped to the nearest. A table and its places are given together or not at all.
Rule RelativeAttentionRule;
Kernel RelativeAttentionKernel;

}  // namespace reprise::ops
