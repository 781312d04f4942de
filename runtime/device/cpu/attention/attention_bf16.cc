// Attention by the vectors' own products of bfloat16 (vdpbf16ps), twice as fast as products of
// floats: scaled queries, keys, weights and values are rounded, sums and softmax are float32.
//
// A block of queries is a few vectors, as in attention.cc, and its scores are [key][query].
// Operands lie in pairs, one word of 32 bits for two neighbours: of a query's or a key's row in the
// first product, and of a column of weights or values in the second, where a word has two keys.
//
// Every score is summed in the order of a row and every output in the order of the keys, by pairs
// that are counted from the first; half a pair is filled with zeros. So neither the form of a
// tile nor a division of the work changes a bit.
#include <algorithm>

#include "runtime/device/cpu/attention/attention.h"
#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/attention/attention_bf16.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/attention/attention_block-inl.h"
#include "runtime/device/cpu/gemm/bf16-inl.h"
#include "runtime/device/cpu/simd/math-inl.h"
#include "runtime/device/cpu/simd/transpose-inl.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// Vectors of queries in a block, keys in a tile of scores, queries and vectors in a tile of output:
// 24 sums each.
constexpr int kVectors = 3;
constexpr int kKeyTile = 8;
constexpr int kOutRows = 12;
constexpr int kOutVectors = 2;
constexpr int64_t kBlock = int64_t{kVectors} * kLanes;
constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
// Rounds `count` floats up to whole vectors.
constexpr int64_t Whole(int64_t count) { return CeilDiv(count, kLanes) * kLanes; }

// The scratch of a call. Words of two bfloat16 are kept as floats.
struct Scratch {
  // `count` keys, or fewer.
  Scratch(int64_t count, int64_t head_dim, int64_t v_head_dim, float* memory) : end(memory) {
    const auto take = [this](int64_t floats) {
      float* begin = end;
      end += Whole(floats);
      return begin;
    };
    const int64_t most_scores = std::min(kBlock * count, std::max(kMaxBlockScores, kLanes * count));
    pairs = CeilDiv(head_dim, 2);
    key_words = Whole(pairs);
    value_words = Whole(v_head_dim);
    keys = take(count * key_words);
    values = take(CeilDiv(count, 2) * value_words);
    queries = take(pairs * kBlock);
    rows = take(key_words * kBlock);
    // A tile of output may read up to kOutRows words past the last one.
    scores = take(most_scores + kOutRows);
    mask = take(most_scores);
  }

  int64_t pairs;        // number of pairs in a row of queries or keys
  int64_t key_words;    // distance between rows of `keys`
  int64_t value_words;  // distance between rows of `values`
  float* keys;          // [keys][key_words] pairs
  float* values;        // [pairs of keys][value_words]
  float* queries;       // [pairs][stride]
  float* rows;          // [queries][key_words], queries on their way
  float* scores;        // [keys][stride], then [pairs of keys][stride] weights
  float* mask;          // [keys] or [keys][stride]
  float* end;
};

int64_t Bf16ScratchFloats(int64_t keys, int64_t head_dim, int64_t v_head_dim) {
  float* const nowhere = nullptr;
  return Scratch(keys, head_dim, v_head_dim, nowhere).end - nowhere;
}

// One block of queries against all keys.
struct Block {
  Scratch scratch;
  BlockMask mask;
  float* max;      // [stride]
  float* inverse;  // [stride], one over the sums of exponentials
  int64_t stride;
  bool asks_ahead;  // the first block of a call prefetches the next head
};

// Up to a vector from memory, zero in the lanes from `count` on.
HWY_INLINE VF LoadFirst(F32 d, const float* p, int64_t count) {
  if (count >= kLanes) return hn::LoadU(d, p);
  return count > 0 ? LoadPart(d, p, count) : hn::Zero(d);
}

// Rows of `floats` times `scale` as pairs, rows of `words`.
void PackRows(const float* HWY_RESTRICT from, int64_t stride, int64_t rows, int64_t floats,
              float scale, float* HWY_RESTRICT to, int64_t words) {
  const F32 d;
  const VF factor = hn::Set(d, scale);
  for (int64_t r = 0; r < rows; ++r, from += stride, to += words) {
    for (int64_t c = 0; c < floats; c += 2 * kLanes) {
      const VF low = LoadFirst(d, from + c, floats - c);
      const VF high = LoadFirst(d, from + c + kLanes, floats - c - kLanes);
      hn::Store(RoundPair(hn::Mul(low, factor), hn::Mul(high, factor)), d, to + c / 2);
    }
  }
}

// Queries [first, first + live) as columns. Columns past them repeat the last query: their
// results are computed and never written.
void PackQueries(const AttentionArgs& args, int64_t first, int64_t live, const Block& block) {
  const F32 d;
  const Scratch& scratch = block.scratch;
  PackRows(args.q + first * args.q_stride, args.q_stride, live, args.head_dim, args.scale,
           scratch.rows, scratch.key_words);
  for (int64_t group = 0; group < block.stride; group += kLanes) {
    const float* rows[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) {
      rows[i] = scratch.rows + std::min(group + i, live - 1) * scratch.key_words;
    }
    TransposeWords(d, rows, scratch.pairs, scratch.queries + group, block.stride);
  }
}

void PackValues(const AttentionArgs& args, const Scratch& scratch) {
  const F32 d;
  float* HWY_RESTRICT to = scratch.values;
  const float* HWY_RESTRICT from = args.v;
  for (int64_t j = 0; j < args.keys; j += 2, from += 2 * args.v_stride, to += scratch.value_words) {
    const bool whole = j + 1 < args.keys;
    for (int64_t c = 0; c < args.v_head_dim; c += kLanes) {
      const VF low = LoadFirst(d, from + c, args.v_head_dim - c);
      const VF high =
          whole ? LoadFirst(d, from + args.v_stride + c, args.v_head_dim - c) : hn::Zero(d);
      hn::Store(PairLanes(low, high), d, to + c);
    }
  }
}

// Scores of kKeys keys from `first` on, masked, and the running maximum.
template <int kVecs, int kKeys>
HWY_INLINE void ScoreTile(const Block& block, int64_t first) {
  const F32 d;
  constexpr int64_t kStride = int64_t{kVecs} * kLanes;
  VF acc[kKeys][kVecs];
  HWY_UNROLL(8) for (int r = 0; r < kKeys; ++r) {
    HWY_UNROLL(8) for (int v = 0; v < kVecs; ++v) acc[r][v] = hn::Zero(d);
  }
  const int64_t key_words = block.scratch.key_words;
  const float* HWY_RESTRICT k = block.scratch.keys + first * key_words;
  const float* HWY_RESTRICT q = block.scratch.queries;
  for (int64_t i = 0; i < block.scratch.pairs; ++i, ++k, q += kStride) {
    VF qv[kVecs];
    HWY_UNROLL(8) for (int v = 0; v < kVecs; ++v) qv[v] = hn::Load(d, q + v * kLanes);
    HWY_UNROLL(8) for (int r = 0; r < kKeys; ++r) {
      const VF kv = hn::Set(d, k[r * key_words]);
      HWY_UNROLL(8) for (int v = 0; v < kVecs; ++v) AccumulatePairs(acc[r][v], kv, qv[v]);
    }
  }
  FinishScores(block.mask, first, acc, block.scratch.scores, block.max);
}

// Scores become weights: the exponentials of keys 2 i and 2 i + 1 lie in the words of row i.
template <int kVecs>
HWY_INLINE void Weights(const AttentionArgs& args, const Block& block) {
  const F32 d;
  constexpr int64_t kStride = int64_t{kVecs} * kLanes;
  VF max[kVecs], sum[kVecs];
  HWY_UNROLL(8) for (int v = 0; v < kVecs; ++v) {
    max[v] = ReferenceOf(args, hn::Load(d, block.max + v * kLanes));
    sum[v] = hn::Zero(d);
  }
  // A weight never lies after the score that it is computed from.
  const float* from = block.scratch.scores;
  float* to = block.scratch.scores;
  int64_t j = 0;
  for (; j + 2 <= args.keys; j += 2, from += 2 * kStride, to += kStride) {
    VF low[kVecs], high[kVecs];
    HWY_UNROLL(8) for (int v = 0; v < kVecs; ++v) {
      low[v] = hn::Load(d, from + v * kLanes);
      high[v] = hn::Load(d, from + kStride + v * kLanes);
    }
    HWY_UNROLL(8) for (int v = 0; v < kVecs; ++v) {
      low[v] = SoftmaxExp(d, hn::Sub(low[v], max[v]), kLowestExponent);
      high[v] = SoftmaxExp(d, hn::Sub(high[v], max[v]), kLowestExponent);
      sum[v] = hn::Add(hn::Add(sum[v], low[v]), high[v]);
      hn::Store(PairLanes(low[v], high[v]), d, to + v * kLanes);
    }
  }
  HWY_UNROLL(8) for (int v = 0; v < kVecs; ++v) {
    if (j < args.keys) {
      const VF low =
          SoftmaxExp(d, hn::Sub(hn::Load(d, from + v * kLanes), max[v]), kLowestExponent);
      sum[v] = hn::Add(sum[v], low);
      hn::Store(PairLanes(low, hn::Zero(d)), d, to + v * kLanes);
    }
    hn::Store(InverseOf(sum[v]), d, block.inverse + v * kLanes);
  }
}

template <int kVecs>
HWY_NOINLINE void ScoreBlock(const AttentionArgs& args, const Block& block) {
  const F32 d;
  HWY_UNROLL(8) for (int v = 0; v < kVecs; ++v) {
    hn::Store(hn::Set(d, kMinusInfinity), d, block.max + v * kLanes);
  }
  int64_t key = 0;
  for (; key + kKeyTile <= args.keys; key += kKeyTile) {
    if (block.asks_ahead) AskForNextHead(args, key, kKeyTile);
    ScoreTile<kVecs, kKeyTile>(block, key);
  }
  for (; key + 3 <= args.keys; key += 3) ScoreTile<kVecs, 3>(block, key);
  for (; key < args.keys; ++key) ScoreTile<kVecs, 1>(block, key);
  Weights<kVecs>(args, block);
}

template <int kVecs>
void ScoreBlockOf(int64_t vectors, const AttentionArgs& args, const Block& block) {
  if constexpr (kVecs == 1) {
    ScoreBlock<1>(args, block);
  } else if (vectors == kVecs) {
    ScoreBlock<kVecs>(args, block);
  } else {
    ScoreBlockOf<kVecs - 1>(vectors, args, block);
  }
}

// Rows [first, first + live) of the block times V, kVecs vectors of columns from `column` on.
template <int kRows, int kVecs>
HWY_NOINLINE void OutputTile(const AttentionArgs& args, const Block& block, int64_t first,
                             int64_t live, int64_t column, float* out) {
  const F32 d;
  VF acc[kRows][kVecs];
  HWY_UNROLL(12) for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) acc[r][v] = hn::Zero(d);
  }
  const int64_t p_stride = block.stride, v_stride = block.scratch.value_words;
  const float* HWY_RESTRICT p = block.scratch.scores + first;
  const float* HWY_RESTRICT values = block.scratch.values + column;
  for (int64_t j = 0; j < args.keys; j += 2, p += p_stride, values += v_stride) {
    VF vv[kVecs];
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) vv[v] = hn::Load(d, values + v * kLanes);
    HWY_UNROLL(12) for (int r = 0; r < kRows; ++r) {
      const VF pv = hn::Set(d, p[r]);
      HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) AccumulatePairs(acc[r][v], pv, vv[v]);
    }
  }
  // Columns of the last vector.
  const int64_t tail =
      std::min<int64_t>(args.v_head_dim - column, kVecs * kLanes) - (kVecs - 1) * kLanes;
  WriteOutput(acc, block.inverse + first, live, tail, out + column, args.out_stride);
}

template <int kRows>
void OutputRows(const AttentionArgs& args, const Block& block, int64_t first, int64_t live,
                float* out) {
  int64_t column = 0;
  for (; args.v_head_dim - column > kLanes; column += kOutVectors * kLanes) {
    OutputTile<kRows, kOutVectors>(args, block, first, live, column, out);
  }
  if (column < args.v_head_dim) OutputTile<kRows, 1>(args, block, first, live, column, out);
}

void Bf16Rows(const AttentionArgs& args, int64_t query_begin, int64_t query_end) {
  HWY_ALIGN float max[kBlock];
  HWY_ALIGN float inverse[kBlock];
  int64_t widest = kBlock;
  while (widest > kLanes && widest * args.keys > kMaxBlockScores) widest -= kLanes;

  Block block = {.scratch = Scratch(args.keys, args.head_dim, args.v_head_dim, args.scratch),
                 .mask = {},
                 .max = max,
                 .inverse = inverse,
                 .stride = 0,
                 .asks_ahead = false};
  PackRows(args.k, args.k_stride, args.keys, args.head_dim, /*scale=*/1, block.scratch.keys,
           block.scratch.key_words);
  PackValues(args, block.scratch);
  for (int64_t first = query_begin; first < query_end; first += widest) {
    const int64_t live = std::min(widest, query_end - first);
    block.stride = Whole(live);
    block.asks_ahead = first == query_begin && args.k_stride > args.head_dim;
    PackQueries(args, first, live, block);
    block.mask = MakeMask(args, first, live, block.stride, block.scratch.mask);
    ScoreBlockOf<kVectors>(block.stride / kLanes, args, block);
    float* out = args.out + first * args.out_stride;
    for (int64_t i = 0; i < live; i += kOutRows, out += kOutRows * args.out_stride) {
      const int64_t rows = std::min<int64_t>(kOutRows, live - i);
      if (rows > 8) {
        OutputRows<kOutRows>(args, block, i, rows, out);
      } else if (rows > 4) {
        OutputRows<8>(args, block, i, rows, out);
      } else {
        OutputRows<4>(args, block, i, rows, out);
      }
    }
  }
}

}  // namespace

constexpr AttentionKernels kBf16AttentionKernels = {kBlock, Bf16Rows, Bf16ScratchFloats};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET == HWY_AVX3

#if HWY_ONCE
namespace reprise::cpu {

const AttentionKernels* DotAttentionKernelsFor(Isa isa) {
#if REPRISE_WITH_AVX512
  if (isa.Has(CpuFeature::kAvx512Bf16)) return &N_AVX3::kBf16AttentionKernels;
#endif
  return nullptr;
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
