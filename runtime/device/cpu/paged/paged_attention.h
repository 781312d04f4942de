// Attention of single tokens over the pages of their sequences: float32 arithmetic over keys and
// values of float32, bfloat16, or 8 bits with a scale for each position and head. Kernels that
// round multiply bfloat16 instead, in pairs: queries, keys, weights and values are rounded,
// sums and softmax are float32.
//
// The score of a key, its weight and its share of the result are computed with one order of sums:
// products along a head's elements one after another, weights by the key's place in its page,
// values key by key from position 0. So the result of a row depends on that row's own query and
// keys alone: not on the rows that are computed with it, on the number of new tokens or on threads.
//
// Threads: pure; a call writes the outputs of its rows and its own scratch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "runtime/base/cpu/cpu_info.h"
#include "runtime/device/cpu/simd/transpose.h"
#include "runtime/ops/attention/paged.h"

namespace reprise::cpu {

// One query of one head.
struct PagedRow {
  const float* q = nullptr;
  float* out = nullptr;
  int64_t position = 0;
  float slope = 0;  // times (key - query) is added to the score
  // A score next to the scores of keys, whose weight has no value; the softmax has it as its last
  // term.
  float sink = -std::numeric_limits<float>::infinity();
  // Null, or PagedArgs::bias_span numbers from the farthest distance to 0, between kPagePad numbers
  // on either side: the number of (query - key), or of the farthest distance, is added.
  const float* biases = nullptr;
};

// The numbers before a row's biases (the farthest distance's) and after them (any).
inline constexpr int64_t kPagePad = 16;

// The keys that the next call looks at, which are asked for ahead.
struct PagedNext {
  std::byte* const* pages = nullptr;
  int64_t first_page = 0;
  int64_t last_page = -1;  // -1: nothing is known
  int64_t k_offset = 0;
};

struct PagedArgs {
  std::byte* const* pages = nullptr;  // the sequence's
  // Where a client carries the keys and values of the head: `positions` rows of each, one after
  // another. Null: they lie in pages.
  const std::byte* keys = nullptr;
  const std::byte* values = nullptr;
  // They are of float16, which this makes floats of; null: they are floats.
  void (*widen)(const void* x, float* y, int64_t count) = nullptr;
  int64_t positions = 0;
  float* tile = nullptr;          // PagedTileFloats(head_dim, v_head_dim) floats for them
  Transpose transpose = nullptr;  // writes these
  int64_t k_offset = 0;           // elements from a page's begin to the head's keys
  int64_t v_offset = 0;
  int64_t k_scales = 0;  // floats from there to their scales, where they are integers
  int64_t v_scales = 0;
  PagedNext next;
  int64_t head_dim = 0;
  int64_t v_head_dim = 0;
  float scale = 1;
  float softcap = 0;         // 0: none; otherwise softcap * tanh(score / softcap)
  int64_t bias_span = 0;     // distances that have biases of their own
  int64_t window = 0;        // how many of the last positions are seen; 0: all
  float* scratch = nullptr;  // PagedScratchFloats(context) floats, aligned to 64 bytes
  int64_t scratch_stride = 0;
};

struct PagedKernels {
  int64_t most_rows;  // that one call takes
  // Rows of one sequence and one head of keys and values.
  void (*rows)(const PagedArgs& args, const PagedRow* rows, int64_t count);
};

// By CacheDType; the last one reads client-managed caches.
struct PagedTable {
  PagedKernels kernels[4];
};

// The kernels of one tier.
struct PagedTables {
  PagedTable exact, rounded;
};

// The largest head_dim that is rounded.
inline constexpr int64_t kMostRoundedHead = 512;
// Returns whether `isa` multiplies bfloat16, so that its kernels round where that is asked for.
bool RoundsPages(Isa isa);

// Returns the kernels of the highest tier that is not above `isa`. `rounds`: those that round,
// where RoundsPages.
const PagedKernels& PagedKernelsFor(Isa isa, ops::CacheDType dtype = ops::CacheDType::kFloat32,
                                    bool rounds = false);
// Returns the kernels for client-managed keys and values: the bits equal those for pages of
// float32.
const PagedKernels& CarriedKernelsFor(Isa isa, bool rounds = false);

// Scores of one row, for sequences of up to `context` positions.
constexpr int64_t PagedScratchStride(int64_t context) { return (context + 15) / 16 * 16 + 16; }
inline constexpr int64_t kMostPagedRows = 8;
// Keys of the pages whose scores are summed side by side, as a page holds them; then the rows of a
// page that are widened, and a vector that may be read after them.
constexpr int64_t PagedTileFloats(int64_t head_dim, int64_t v_head_dim) {
  const int64_t width = head_dim > v_head_dim ? head_dim : v_head_dim;
  return (2 * head_dim + width + 1) * ops::kPagePositions;
}

}  // namespace reprise::cpu
