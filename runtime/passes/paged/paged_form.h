// MakePagedForm: a decoder's graph becomes one over single tokens whose keys and values lie in
// pages.
//
// The result has the axes "tokens" and "segments" and these inputs:
//
//   the model's ids      [tokens, 1]    new tokens, of any sequences
//   reprise.tables       i64[tokens]    the address of the table of its sequence's pages
//   reprise.positions    i64[tokens]    the place of each token in its sequence
//   reprise.segments     i32[segments + 1]  after 0, ascending: one after each token whose scores
//                        are requested; missing ones repeat the last one
//
//
// and where caches hold an encoder's result, computed once for a sequence, two more:
//
//   reprise.cross_tables   i64[tokens]  the address of the table of the pages of these
//   reprise.cross_lengths  i64[tokens]  how many places of the encoder's result they hold
//
// and one output, the scores [segments, 1, vocabulary] of the requested tokens. Caches, masks,
// flags and lengths are removed: attention reads pages by these tables. So a recipe is keyed by
// its number of tokens and by nothing else.
//
// How: each token is a row of a batch, of one new token and some past. The past inputs become
// reprise.CachedRows, a mask becomes ones, numbers that are computed from the length of the past
// become numbers computed from positions. The effect of a mask, whichever nodes build it, is
// measured at several lengths, with positions that are constants. Capture passes fuse the attention
// of any exporter into reprise.Attention, whose caches PageAttention then turns into pages. Finally
// the graph is made with two lengths of the past: the result must not depend on it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/held_graph.h"
#include "runtime/graph/node.h"
#include "runtime/graph/parameter_expr.h"
#include "runtime/graph/tensor.h"
#include "runtime/ops/attention/paged.h"
#include "runtime/passes/paged/decoder.h"
#include "runtime/passes/paged/small_tables.h"

namespace reprise {

// An input of a paged graph besides the model's ids and the inputs of packed tokens.
inline constexpr char kTablesInput[] = "reprise.tables";
inline constexpr char kCrossTablesInput[] = "reprise.cross_tables";
inline constexpr char kCrossLengthsInput[] = "reprise.cross_lengths";

// One cache input of the model in a page.
struct PagedCache {
  std::string input;
  int64_t heads = 0;
  int64_t size = 0;
  bool is_key = false;
  bool cross = false;  // lies in pages of its own, a position for each place of an encoder's result
  int64_t offset = 0;  // elements from the begin of a page
  int64_t scales = 0;  // floats from there, where elements are integers
};

struct PagedForm {
  HeldGraph graph;  // symbolic, over tokens and segments
  Decoder decoder;
  std::vector<PagedCache> caches;  // as in `decoder`
  int64_t page_bytes = 0;
  int64_t cross_page_bytes = 0;  // 0: no cache holds an encoder's result
  int64_t cross_context = 0;     // places of an encoder's result, at most
  int64_t context = 0;           // positions of a sequence, at most
  int64_t vocabulary = 0;
};

struct PagedOptions {
  // 0: as many as the model's tables of positions have, or stated_context; fewer where masks follow
  // one rule up to there alone.
  int64_t context = 0;
  int64_t stated_context = 0;  // as a file next to the model states; 0: none does, kContext
  int64_t cross_context = kContext;
  // Returns the value of a small parameter that is added to scores, since it decides the form
  // of attention. A model for which it returns nothing, or without such a function, is refused.
  ParameterValueOf value_of;
  static constexpr int64_t kContext = 4096;
  ops::CacheDType cache_dtype = ops::CacheDType::kFloat32;
  int threads = 1;  // that look at the model side by side
  int ranks = 1;    // that divide the heads: pages have room for the largest share
};

// NOT_FOUND where the model has no cache, UNIMPLEMENTED naming the part that cannot be paged, and
// why.
absl::StatusOr<PagedForm> MakePagedForm(const Graph& symbolic,
                                        const std::vector<std::string>& outputs,
                                        const PagedOptions& options);

}  // namespace reprise
