// PackTokens: a graph over rows of one length becomes one over tokens that lie one after another.
//
// A value [batch, sequence, rest...] becomes [tokens, rest...], a value [batch, rest...] becomes
// [segments, rest...]. A segment is one row of a request, as long as its client sent it; there is
// no padding between segments. Token-wise ops carry over as they are; attention, lookups by
// position, first token, sums and pooling see the segments through two more inputs, the last ones:
//
//   reprise.positions  i64[tokens]        the position of each token in its segment
//   reprise.segments   i32[segments + 1]  where each segment begins, then the number of tokens;
//                                         segments that are not there are empty
//
// Where a scale belongs to a request (request_scales.h), which may have several segments, two more
// follow, each i32[segments + 1] as reprise.segments:
//
//   reprise.request_tokens   where the tokens of each request begin
//   reprise.request_rows     where its segments begin: a value [segments, rest...] is cut there
//
// The result is a symbolic graph over the axes "tokens" and "segments" (already fused): it is
// specialised and compiled like any other. Tables by position (a learnt bias for each pair of
// positions) are as large as `longest`.
//
// How: the model is specialised and fused at two sizes of both axes. A dim that differs is one of
// the axes, a constant that differs must be a table of which shorter sequences see a part. A node
// for which no rule is known refuses, by name: the model is padded instead.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "runtime/graph/node.h"

namespace reprise {

struct PackOptions {
  std::string batch;  // symbols of the two axes in the inputs' dims
  std::string sequence;
  int64_t longest = 0;  // the most tokens of a segment, at least 3
};

// Symbols of the axes of a packed graph, and its inputs besides the model's own.
inline constexpr char kTokensAxis[] = "tokens";
inline constexpr char kSegmentsAxis[] = "segments";
inline constexpr char kPositionsInput[] = "reprise.positions";
inline constexpr char kSegmentsInput[] = "reprise.segments";
inline constexpr char kRequestTokensInput[] = "reprise.request_tokens";
inline constexpr char kRequestRowsInput[] = "reprise.request_rows";

// UNIMPLEMENTED naming the node (input, output) that cannot be packed, and why; otherwise
// errors as of Specialize and the passes.
absl::StatusOr<Graph> PackTokens(const Graph& symbolic, const PackOptions& options);

}  // namespace reprise
