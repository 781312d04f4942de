// Ops over packed tokens: the rows of requests lie one after another, without padding.
//
// `segments` i32 [N + 1] says where each of N segments begins; the last entry is the number of
// tokens that there are. A segment may be empty. Tokens after the last entry belong to no segment
// and are neither read nor, in a result, set to anything in particular. Entries out of range or out
// of order are read as the nearest valid one.
#pragma once

#include <algorithm>

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// reprise.SegmentAttention(q, k, v, mask?, bias?, segments, places?) {num_heads, scale,
// nan_to_zero, packed_qkv, lowest?}: reprise.Attention within each segment. q [T, H*D], k [T, H*D],
// v [T, H*Dv], or all of them in q with packed_qkv = 1. mask [T]: of each key, added (float32) or
// kept where true (bool). bias [H or 1, P, P] float32: added to the score of query i and key j of a
// segment; beyond P the last row and column hold. With `lowest` (float32) the sum of an added mask
// and a bias is no lower than that, so that a score that both hide is as low as one that either
// hides.
//
// With places i64 [N], where each segment's only query stands among its tokens, q is [N, H*D] and
// so is the result, 0 for an empty segment; packed_qkv is 0.
Rule SegmentAttentionRule;
Kernel SegmentAttentionKernel;

// reprise.SegmentReduce(x, segments) {reduction}: x [T, ...] -> [N, ...], "sum", "mean", "max",
// "min", "first" or "last" over the tokens of each segment. An empty segment gives 0.
Rule SegmentReduceRule;
Kernel SegmentReduceKernel;

// reprise.SegmentSpread(x, segments, tokens): x [N, ...], tokens [T, ...] -> [T, ...]: gives every
// token the row of its segment. Only the size of dim 0 of `tokens` is read.
Rule SegmentSpreadRule;
Kernel SegmentSpreadKernel;

// reprise.SegmentCumSum(x, segments) {exclusive, reverse}: CumSum along dim 0, restarted in every
// segment; 0 after the last one, since positions are counted with it and looked up.
Rule SegmentCumSumRule;
Kernel SegmentCumSumKernel;

// reprise.SegmentPlace(x, segments) {largest, select_last_index}: x [T, ...] -> i64 [N, ...]:
// ArgMax (ArgMin where `largest` is 0) over the tokens of each segment, a position in it. An empty
// segment gives 0.
Rule SegmentPlaceRule;
Kernel SegmentPlaceKernel;

// reprise.SegmentPick(x, places, segments): x [T, rest...], places i64 [N, picks...] -> [N,
// picks..., rest...]: the tokens of each segment that its places name. Negative places count from
// the segment's own end; one beyond it is reported and its first token taken. An empty segment
// gives 0 for all places.
Rule SegmentPickRule;
Kernel SegmentPickKernel;

// Checks operand `input`, which says where segments begin: i32 [N + 1].
absl::Status CheckSegments(const InferContext& context, size_t input);

struct SegmentRange {
  int64_t begin;
  int64_t end;
  int64_t size() const { return end - begin; }
};

// Returns segment `s` of `tokens` tokens, valid for any contents of `segments`.
inline SegmentRange SegmentAt(const int32_t* segments, int64_t s, int64_t tokens) {
  const int64_t begin = std::clamp<int64_t>(segments[s], 0, tokens);
  return {begin, std::clamp<int64_t>(segments[s + 1], begin, tokens)};
}

// Checks `places`, where they are given: with them each of the segments has one of `queries` rows.
absl::Status CheckPlaces(const InferContext& context, size_t places, size_t segments,
                         int64_t queries);

// The rows of q that a segment has, and where the first of them stands among its tokens.
struct SegmentQueries {
  int64_t first, count, place;
};

// Calls f(segment, queries) for the segments that are not empty, of `tokens` tokens, of a node with
// these inputs. The rows of output 0, of `width` floats, are cleared where an empty segment has
// one.
template <typename F>
void ForEachSegment(const KernelContext& context, size_t places, size_t segments, int64_t tokens,
                    int64_t width, F f) {
  const bool one_a_segment = HasInput(context, places);
  for (int64_t s = 0; s + 1 < context.inputs[segments].shape[0]; ++s) {
    const SegmentRange segment = SegmentAt(context.inputs[segments].as<int32_t>(), s, tokens);
    if (segment.size() == 0) {
      if (one_a_segment) std::fill_n(context.outputs[0].as<float>() + s * width, width, 0.0f);
    } else if (one_a_segment) {
      const int64_t place = context.inputs[places].as<int64_t>()[s];
      f(segment, SegmentQueries{s, 1, std::clamp<int64_t>(place, 0, segment.size() - 1)});
    } else {
      f(segment, SegmentQueries{segment.begin, segment.size(), 0});
    }
  }
}

}  // namespace reprise::ops
