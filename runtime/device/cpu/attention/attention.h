// Attention of one (sequence, head): out = softmax(scale * Q K^T + mask) V, float32.
//
// Scores never leave the cache: queries are taken in blocks of a few vectors, and a block's scores
// against all keys live in scratch, transposed ([key][query], so that softmax runs down the keys
// without a horizontal step). Q, K, V and the output are rows that may lie anywhere: a fused
// [tokens, 3 * hidden] product is read where it is.
//
// Threads: pure; a call writes rows [query_begin, query_end) of the output and its own scratch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "runtime/base/cpu/cpu_info.h"

namespace reprise::cpu {

// Pointers point to the sequence and head; strides are in elements, from one row to the next. A
// mask row is [keys], its elements contiguous; its stride is 0 when all queries share it.
struct AttentionArgs {
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  float* out = nullptr;
  int64_t q_stride = 0;
  int64_t k_stride = 0;
  int64_t v_stride = 0;
  int64_t out_stride = 0;
  int64_t keys = 0;  // Live keys: rows of K and V after them are not read.
  int64_t head_dim = 0;
  int64_t v_head_dim = 0;
  float scale = 1;
  // Added to the scaled scores, or null. Minus infinity takes the place of any score, also of NaN.
  const float* bias = nullptr;
  int64_t bias_stride = 0;
  const float* key_bias = nullptr;  // [keys], added for every query, in addition to `bias`. Or
                                    // null.
  // The lower bound of the sum of both masks: a key that both hide is as low as one that one hides.
  float lowest_bias = -std::numeric_limits<float>::infinity();
  const uint8_t* keep = nullptr;  // 0: the score becomes -inf. Or null.
  int64_t keep_stride = 0;
  // The result of a query all of whose keys are masked: NaN, as ONNX's softmax over -inf gives, or
  // zeros. Without any keys the result is zeros either way.
  bool zero_when_masked = false;
  // Whether one or a few queries are summed like many: bits then depend on own numbers alone.
  bool one_order = false;
  float* scratch = nullptr;  // AttentionKernels::scratch_floats, aligned to 64 bytes.
};

struct AttentionKernels {
  // Work is best divided at multiples of this many queries.
  int64_t query_block;
  void (*rows)(const AttentionArgs& args, int64_t query_begin, int64_t query_end);

  // Enough for any number of queries against up to `keys` keys.
  int64_t (*scratch_floats)(int64_t keys, int64_t head_dim, int64_t v_head_dim);
};

// Returns the kernels of the highest tier that is not above `isa`.
const AttentionKernels& AttentionKernelsFor(Isa isa);

// Returns the same by the tile unit of the CPU; null where `isa` has none. See attention_amx.cc.
const AttentionKernels* TileAttentionKernelsFor(Isa isa);
// Returns the same, but scaled queries, keys, weights and values are rounded to bfloat16: by the
// tile unit where `isa` has it, else by vectors; null where these do not multiply bfloat16 either.
const AttentionKernels* RoundingAttentionKernelsFor(Isa isa);
// Returns the same on vectors, without the tile unit. See attention_bf16.cc.
const AttentionKernels* DotAttentionKernelsFor(Isa isa);
// Returns whether the exact kernels of the tile unit are faster for this many queries and keys of
// a head; this is never so for more than kMostTileAttentionKeys keys.
bool SuitsTileAttention(int64_t queries, int64_t keys, int64_t head_dim);
inline constexpr int64_t kMostTileAttentionKeys = 16384;

}  // namespace reprise::cpu
