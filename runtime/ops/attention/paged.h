// Ops of decoders whose keys and values lie in pages that the server owns.
//
// A paged graph computes one token a row: dim 0 counts tokens of any sequences. Where the keys and
// values of a token's sequence lie is not in the graph: two inputs that the replaying code fills
// say it, a position in a sequence and an address for each token. No client ever sends these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// Positions of a page, in all layers.
inline constexpr int64_t kPagePositions = 16;
// Values of one position in a page take whole vectors.
constexpr int64_t PagedValueStride(int64_t size) { return (size + 15) / 16 * 16; }

// How pages hold keys and values. Integers have a scale for each position and head: the largest
// magnitude of the head's elements is 127.
enum class CacheDType : int64_t { kFloat32 = 0, kBFloat16 = 1, kInt8 = 2 };
constexpr int64_t CacheCellBytes(CacheDType dtype) {
  return dtype == CacheDType::kFloat32 ? 4 : dtype == CacheDType::kBFloat16 ? 2 : 1;
}
std::optional<CacheDType> ParseCacheDType(absl::string_view name);  // "f32", "bf16", "int8"
absl::string_view CacheDTypeName(CacheDType dtype);

// A sequence whose client manages its KV cache: keys and values are read from the client's memory,
// and written once, into the answer. Both are row-major, of float32 or float16, which is widened.
struct CarriedCache {
  const std::byte* past = nullptr;  // [heads, past, size], at any alignment
  std::byte* present = nullptr;     // [heads, past + new, size]; vectors after it can be read
};
struct CarriedSequence {
  const CarriedCache* caches = nullptr;  // one for each cache input of the model
  int64_t past = 0;
  int64_t total = 0;
  bool begins = false;  // nothing of it was computed yet: its past is to be written
  bool half = false;    // keys and values are of float16
};
// One token of it. The address of a token's table is the address of one of these, plus 1.
struct alignas(8) CarriedToken {
  const CarriedSequence* sequence = nullptr;
  int64_t place = 0;  // its position
};
inline constexpr int64_t kCarriedMark = 1;

// reprise.CachedRows(tokens [T, ...]) {cache, heads, size, past} -> float32 [T, heads, past, size]:
// stands for the contents of a cache while a graph is rewritten. No recipe is left with one: the
// attention that reads it becomes reprise.PagedAttention.
Rule CachedRowsRule;
Kernel CachedRowsKernel;

// reprise.PagedAttention(q, k, v, positions, tables, sinks?) {num_heads, kv_heads, scale, k_offset,
// v_offset, context, k_cache, v_cache, window?, softcap?, slopes?, biases?, bias_span?,
// cache_dtype?, k_scales?, v_scales?}: q [T, 1, H*D], k [T, KV*D], v [T, KV*Dv], positions i64 [T],
// tables i64 [T] -> [T, 1, H*Dv]. tables[t] is the address of a table, std::byte*[], of the pages
// of token t's sequence; 0: there is no cache, and nothing is computed. An odd one is the address
// of a CarriedToken, whose caches `k_cache` and `v_cache` are read and written. Tokens of a
// sequence lie side by side, in order. The keys and values of each token are appended to its
// sequence's pages, at elements k_offset and v_offset of a page; then each token attends to all
// positions of its sequence up to its own, the last `window` of them where that is not 0. `slopes`,
// one a head: times (key - query) is added to a score. `biases`, bias_span numbers a head: number
// (query - key), or the last one where the key comes earlier, is added to a score. `sinks` [H]: a
// score of each head that the softmax has besides the scores of keys.
//
// In a page a layer's keys are [KV, D, kPagePositions] and its values [KV, kPagePositions,
// PagedValueStride(Dv)], elements of cache_dtype (a CacheDType). Scales of integers are
// [KV, kPagePositions] floats, at floats k_scales and v_scales of a page.
Rule PagedAttentionRule;
Kernel PagedAttentionKernel;

// reprise.PagedCrossAttention(q, lengths, tables) {num_heads, kv_heads, v_size, scale, k_offset,
// v_offset, context, softcap?}: q [T, 1, H*D], lengths i64 [T], tables i64 [T] -> [T, 1, H*Dv].
// Each token attends to the first lengths[t] positions of its sequence's pages, which hold an
// encoder's results, written by other code, laid out as above, in float32 always.
Rule PagedCrossAttentionRule;

}  // namespace reprise::ops
