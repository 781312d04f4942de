#include "runtime/device/cpu/attention/attention.h"

#include <algorithm>

#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/attention/attention.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/attention/attention_block-inl.h"
#include "runtime/device/cpu/attention/attention_lone-inl.h"
#include "runtime/device/cpu/simd/math-inl.h"
#include "runtime/device/cpu/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// Vectors of queries in a block, keys in a tile of scores, queries and vectors in a tile of output.
#if HWY_TARGET == HWY_AVX3
constexpr int kVectors = 3;
constexpr int kKeyTile = 8;
constexpr int kOutRows = 12;
#elif HWY_TARGET == HWY_AVX2
constexpr int kVectors = 2;
constexpr int kKeyTile = 6;
constexpr int kOutRows = 4;
#else
constexpr int kVectors = 8;
constexpr int kKeyTile = 1;
constexpr int kOutRows = 4;
#endif
constexpr int kOutVectors = 2;
constexpr int64_t kBlock = int64_t{kVectors} * kLanes;

// A block of queries with the keys that any of them sees. A score row has `stride` floats, one for
// each query.
struct Block {
  float* queries;       // [head_dim][stride], scaled
  float* scores;        // [keys][stride]
  const float* values;  // [keys][v_stride]
  int64_t v_stride;
  BlockMask mask;
  KeyRange seen;
  float* max;  // [stride]
  int64_t stride;
  bool asks_ahead;  // the first block of a call prefetches the next head
};

// Scores of kKeys keys from `first` on, masked, and the running maximum.
template <int kVecs, int kKeys>
HWY_INLINE void ScoreTile(const AttentionArgs& args, const Block& block, int64_t first) {
  const F32 d;
  constexpr int64_t kStride = int64_t{kVecs} * kLanes;
  VF acc[kKeys][kVecs];
  HWY_UNROLL(8) for (int r = 0; r < kKeys; ++r) {
    HWY_UNROLL(8) for (int v = 0; v < kVecs; ++v) acc[r][v] = hn::Zero(d);
  }
  const float* HWY_RESTRICT k = args.k + first * args.k_stride;
  const float* HWY_RESTRICT q = block.queries;
  const int64_t k_stride = args.k_stride;
  for (int64_t i = 0; i < args.head_dim; ++i, ++k, q += kStride) {
    VF qv[kVecs];
    HWY_UNROLL(8) for (int v = 0; v < kVecs; ++v) qv[v] = hn::Load(d, q + v * kLanes);
    HWY_UNROLL(8) for (int r = 0; r < kKeys; ++r) {
      const VF kv = hn::Set(d, k[r * k_stride]);
      HWY_UNROLL(8) for (int v = 0; v < kVecs; ++v) acc[r][v] = hn::MulAdd(kv, qv[v], acc[r][v]);
    }
  }
  FinishScores(block.mask, first, acc, block.scores, block.max);
}

// Scores, then their exponentials, for a block of kVecs vectors of queries; `inverse` gets one over
// the sum of each query.
template <int kVecs>
HWY_NOINLINE void ScoreBlock(const AttentionArgs& args, const Block& block, float* inverse) {
  const F32 d;
  constexpr int64_t kStride = int64_t{kVecs} * kLanes;
  HWY_UNROLL(8) for (int v = 0; v < kVecs; ++v) {
    hn::Store(hn::Set(d, kMinusInfinity), d, block.max + v * kLanes);
  }
  int64_t key = block.seen.begin;
  for (; key + kKeyTile <= block.seen.end; key += kKeyTile) {
    if (block.asks_ahead) AskForNextHead(args, key, kKeyTile);
    ScoreTile<kVecs, kKeyTile>(args, block, key);
  }
  if constexpr (kKeyTile > 3) {
    for (; key + 3 <= block.seen.end; key += 3) ScoreTile<kVecs, 3>(args, block, key);
  }
  for (; key < block.seen.end; ++key) ScoreTile<kVecs, 1>(args, block, key);

  VF max[kVecs], sum[kVecs];
  HWY_UNROLL(8) for (int v = 0; v < kVecs; ++v) {
    max[v] = ReferenceOf(args, hn::Load(d, block.max + v * kLanes));
    sum[v] = hn::Zero(d);
  }
  float* HWY_RESTRICT scores = block.scores + block.seen.begin * kStride;
  for (int64_t j = block.seen.begin; j < block.seen.end; ++j, scores += kStride) {
    HWY_UNROLL(8) for (int v = 0; v < kVecs; ++v) {
      const VF p =
          SoftmaxExp(d, hn::Sub(hn::Load(d, scores + v * kLanes), max[v]), kLowestExponent);
      hn::Store(p, d, scores + v * kLanes);
      sum[v] = hn::Add(sum[v], p);
    }
  }
  HWY_UNROLL(8) for (int v = 0; v < kVecs; ++v) {
    hn::Store(InverseOf(sum[v]), d, inverse + v * kLanes);
  }
}

// Rows [first, first + live) of the block times V, kVecs vectors of columns from `column` on.
template <int kRows, int kVecs>
HWY_NOINLINE void OutputTile(const AttentionArgs& args, const Block& block, const float* inverse,
                             int64_t first, int64_t live, int64_t column, float* out) {
  const F32 d;
  const int64_t columns = std::min<int64_t>(args.v_head_dim - column, kVecs * kLanes);
  // Columns of the last vector; the loads of a whole vector would leave the row.
  const int64_t tail = columns - (kVecs - 1) * kLanes;
  VF acc[kRows][kVecs];
  HWY_UNROLL(12) for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) acc[r][v] = hn::Zero(d);
  }
  const int64_t p_stride = block.stride;
  const int64_t v_stride = block.v_stride;
  const float* HWY_RESTRICT p = block.scores + block.seen.begin * p_stride + first;
  const float* HWY_RESTRICT values = block.values + block.seen.begin * v_stride + column;
  const auto step = [&](auto whole) HWY_ATTR {
#if HWY_TARGET == HWY_SCALAR
    values = Kept(values);  // Otherwise GCC 12 vectorizes loads that read a row too far.
#endif
    VF vv[kVecs];
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
      if constexpr (decltype(whole)::value) {
        vv[v] = hn::LoadU(d, values + v * kLanes);
      } else {
        vv[v] = v + 1 < kVecs ? hn::LoadU(d, values + v * kLanes)
                              : LoadPart(d, values + v * kLanes, tail);
      }
    }
    HWY_UNROLL(12) for (int r = 0; r < kRows; ++r) {
      const VF pv = hn::Set(d, p[r]);
      HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) acc[r][v] = hn::MulAdd(pv, vv[v], acc[r][v]);
    }
    p += p_stride;
    values += v_stride;
  };
  if (tail == kLanes) {
    for (int64_t j = block.seen.begin; j < block.seen.end; ++j) step(std::true_type());
  } else {
    for (int64_t j = block.seen.begin; j < block.seen.end; ++j) step(std::false_type());
  }
  WriteOutput(acc, inverse + first, live, tail, out + column, args.out_stride);
}

template <int kRows>
void OutputRows(const AttentionArgs& args, const Block& block, const float* inverse, int64_t first,
                int64_t live, float* out) {
  int64_t column = 0;
  for (; args.v_head_dim - column > kLanes; column += kOutVectors * kLanes) {
    OutputTile<kRows, kOutVectors>(args, block, inverse, first, live, column, out);
  }
  if (column < args.v_head_dim) {
    OutputTile<kRows, 1>(args, block, inverse, first, live, column, out);
  }
}

// Queries [first, first + live) as columns, multiplied by the scale. Columns after them repeat the
// last query: their results are computed and never written.
void TransposeQueries(const AttentionArgs& args, int64_t first, int64_t live, int64_t stride,
                      float* HWY_RESTRICT to) {
  const F32 d;
  const VF scale = hn::Set(d, args.scale);
  for (int64_t group = 0; group < stride; group += kLanes) {
    const float* rows[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      rows[i] = args.q + (first + std::min(group + i, live - 1)) * args.q_stride;
    }
    TransposeRows(d, rows, args.head_dim, scale, to + group, stride);
  }
}

template <int kVecs>
void ScoreBlockOf(int vectors, const AttentionArgs& args, const Block& block, float* inverse) {
  if constexpr (kVecs == 1) {
    ScoreBlock<1>(args, block, inverse);
  } else if (vectors == kVecs) {
    ScoreBlock<kVecs>(args, block, inverse);
  } else {
    ScoreBlockOf<kVecs - 1>(vectors, args, block, inverse);
  }
}

// Copies V side by side. In a fused product its rows are a few kilobytes apart, so that they share
// few sets of the L1 cache and each has a page of its own: reading them once for each tile would
// miss the cache each time.
void PackValues(const AttentionArgs& args, int64_t stride, float* HWY_RESTRICT to) {
  const F32 d;
  for (int64_t j = 0; j < args.keys; ++j, to += stride) {
    const float* HWY_RESTRICT from = args.v + j * args.v_stride;
    int64_t c = 0;
    for (; c + kLanes <= args.v_head_dim; c += kLanes) hn::Store(hn::LoadU(d, from + c), d, to + c);
    if (c < args.v_head_dim) hn::Store(LoadPart(d, from + c, args.v_head_dim - c), d, to + c);
  }
}

void Rows(const AttentionArgs& args, int64_t query_begin, int64_t query_end) {
  // The few of a sequence, not those that a division over parts has left.
  if (!args.one_order && query_begin == 0 && query_end <= kMostLoneQueries) {
    for (int64_t row = 0; row < query_end; ++row) LoneQuery(args, row, args.scratch);
    return;
  }
  HWY_ALIGN float max[kBlock];
  HWY_ALIGN float inverse[kBlock + kOutRows];
  int64_t widest = kBlock;
  while (widest > kLanes && widest * args.keys > kMaxBlockScores) widest -= kLanes;

  Block block;
  block.values = args.v;
  block.v_stride = args.v_stride;
  float* scratch = args.scratch;
  if (query_end - query_begin > 4 * kOutRows) {
    block.v_stride = (args.v_head_dim + kLanes - 1) / kLanes * kLanes;
    PackValues(args, block.v_stride, scratch);
    block.values = scratch;
    scratch += args.keys * block.v_stride;
  }

  for (int64_t first = query_begin; first < query_end; first += widest) {
    const int64_t live = std::min(widest, query_end - first);
    const int vectors = static_cast<int>((live + kLanes - 1) / kLanes);
    const int64_t stride = int64_t{vectors} * kLanes;
    block.stride = stride;
    block.max = max;
    block.queries = scratch;
    block.scores = block.queries + args.head_dim * stride;
    block.asks_ahead = first == query_begin && args.k_stride > args.head_dim;
    // A tile of output may read up to kOutRows floats after the last score.
    const int64_t mask_offset = (args.keys * stride + kOutRows + kLanes - 1) / kLanes * kLanes;
    TransposeQueries(args, first, live, stride, block.queries);
    block.mask = MakeMask(args, first, live, stride, block.scores + mask_offset);
    block.seen = SeenKeys(block.mask, args.keys, vectors);
    ScoreBlockOf<kVectors>(vectors, args, block, inverse);
    float* out = args.out + first * args.out_stride;
    for (int64_t i = 0; i < live; i += kOutRows, out += kOutRows * args.out_stride) {
      const int64_t rows = std::min<int64_t>(kOutRows, live - i);
      if constexpr (kOutRows > 4) {
        if (rows > 8) {
          OutputRows<kOutRows>(args, block, inverse, i, rows, out);
          continue;
        }
        if (rows > 4) {
          OutputRows<8>(args, block, inverse, i, rows, out);
          continue;
        }
      }
      OutputRows<4>(args, block, inverse, i, rows, out);
    }
  }
}

int64_t ScratchFloats(int64_t keys, int64_t head_dim, int64_t v_head_dim) {
  return std::max(kBlock * (head_dim + 2 * keys + 2) + keys * (v_head_dim + 16) + 64,
                  LoneScratchFloats(keys, head_dim));
}

}  // namespace

constexpr AttentionKernels kAttentionKernels = {kBlock, Rows, ScratchFloats};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const AttentionKernels& AttentionKernelsFor(Isa isa) {
  return REPRISE_CHOOSE_TARGET(isa, kAttentionKernels);
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
