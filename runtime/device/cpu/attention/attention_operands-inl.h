// Queries, keys and values of attention as operands of the tile unit. Included inside
// attention_amx.cc; AVX-512 only.
//
// An operand is one side of a product for one depth: of each part of its floats
// (tile_unit-inl.h) two tiles, of which the second may be absent.
#if defined(REPRISE_CPU_ATTENTION_OPERANDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_ATTENTION_OPERANDS_INL_H_
#undef REPRISE_CPU_ATTENTION_OPERANDS_INL_H_
#else
#define REPRISE_CPU_ATTENTION_OPERANDS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "runtime/device/cpu/attention/attention.h"
#include "runtime/device/cpu/gemm/bf16-inl.h"
#include "runtime/device/cpu/simd/math-inl.h"
#include "runtime/device/cpu/simd/tile_unit-inl.h"
#include "runtime/device/cpu/simd/transpose-inl.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = HWY_LANES(float);
// Queries of a block: two tiles of rows, which share the loaded keys and values. Keys of a block:
// the depth of the second product.
constexpr int64_t kQueries = 2 * kRowsOfTile;
constexpr int64_t kKeys = kDepth;
constexpr int64_t kPatch = kQueries * kKeys;
constexpr int64_t kFloatBytes = sizeof(float);
// One side of a product for one depth, [part][two tiles]: the second tile may be absent.
template <int kPieces>
constexpr int64_t kOperandBytes = kPieces * 2 * kTileBytes;

constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The number of tiles along each dim of the operands.
struct Extent {
  explicit Extent(int64_t keys, int64_t head_dim, int64_t v_head_dim)
      : key_blocks(CeilDiv(keys, kKeys)),
        depth(CeilDiv(head_dim, kDepth)),
        columns(CeilDiv(v_head_dim, 2 * kRowsOfTile)) {}
  int64_t key_blocks;
  int64_t depth;    // tiles along head_dim
  int64_t columns;  // pairs of tiles of V's columns
};

// Parts of a pair of vectors, a row of an operand. In three parts a word of `to` has one lane of
// both; rounded rows of A have neighbours in a word, as the instruction that rounds puts them.
template <int kPieces>
HWY_INLINE void StoreParts(VF low, VF high, std::byte* to) {
  const Bits du;
  if constexpr (kPieces == 1) {
    hn::Store(hn::Or(hn::ShiftRight<16>(RoundToBf16(low)), RoundToBf16(high)), du,
              reinterpret_cast<uint32_t*>(to));
    return;
  }
  const Split low_parts = SplitFloat(low), high_parts = SplitFloat(high);
  HWY_UNROLL(3) for (int p = 0; p < kParts; ++p) {
    hn::Store(Pair(low_parts.parts[p], high_parts.parts[p]), du,
              reinterpret_cast<uint32_t*>(to + p * 2 * kTileBytes));
  }
}
template <int kPieces>
HWY_INLINE void StoreRow(VF low, VF high, std::byte* to) {
  if constexpr (kPieces == 1) {
    hn::Store(RoundPair(low, high), F32(), reinterpret_cast<float*>(to));
  } else {
    StoreParts<kPieces>(low, high, to);
  }
}
constexpr int64_t kOperandRow = kLanes * kFloatBytes;
// Rows of B that share words of row `i` of an operand: that one, times the first, and another.
template <int kPieces>
constexpr int64_t kPairStep = kPieces == 1 ? 2 : 1;
template <int kPieces>
constexpr int64_t kPairAway = kPieces == 1 ? 1 : kDepth / 2;

// Asks for `columns` of rows [first, first + count) of `all`. In a fused product rows are a few
// kilobytes apart, which the core foresees too late.
void Ask(const float* rows, int64_t stride, int64_t columns, int64_t first, int64_t count,
         int64_t all) {
  for (int64_t r = first; r < std::min(first + count, all); ++r) {
    for (int64_t c = 0; c < columns; c += kLanes) __builtin_prefetch(rows + r * stride + c, 0, 3);
  }
}
constexpr int64_t kRowsAhead = 32;

// Queries [first, first + rows), scaled, as rows.
template <int kPieces>
void SplitQueries(const AttentionArgs& args, int64_t first, int64_t rows, int64_t query_end,
                  std::byte* to) {
  const F32 d;
  const VF scale = hn::Set(d, args.scale);
  Ask(args.q, args.q_stride, args.head_dim, first + rows, kQueries, query_end);
  for (int64_t r = 0; r < rows; ++r, to += kOperandRow) {
    const float* HWY_RESTRICT from = args.q + (first + r) * args.q_stride;
    std::byte* out = to;
    for (int64_t at = 0; at < args.head_dim; at += kDepth, out += kOperandBytes<kPieces>) {
      StoreRow<kPieces>(
          hn::Mul(LoadFirst(d, from + at, args.head_dim - at), scale),
          hn::Mul(LoadFirst(d, from + at + kLanes, args.head_dim - at - kLanes), scale), out);
    }
  }
}

// Keys as columns. Those after the last one repeat it.
template <int kPieces>
void SplitKeys(const AttentionArgs& args, const Extent& extent, float* columns, std::byte* to) {
  const F32 d;
  std::fill(columns + args.head_dim * kLanes, columns + extent.depth * kDepth * kLanes, 0.0f);
  for (int64_t first = 0; first < args.keys; first += kLanes) {
    const float* rows[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) {
      rows[i] = args.k + std::min(first + i, args.keys - 1) * args.k_stride;
    }
    Ask(args.k, args.k_stride, args.head_dim, first + kRowsAhead, kLanes, args.keys);
    TransposeRows(d, rows, args.head_dim, hn::Set(d, 1.0f), columns, kLanes);
    const float* HWY_RESTRICT from = columns;
    std::byte* out = to + first / kKeys * extent.depth * kOperandBytes<kPieces> +
                     first % kKeys / kLanes * kTileBytes;
    for (int64_t block = 0; block < extent.depth; ++block, from += kDepth * kLanes) {
      for (int64_t i = 0; i < kDepth / 2; ++i) {
        const float* HWY_RESTRICT row = from + i * kPairStep<kPieces> * kLanes;
        StoreParts<kPieces>(hn::Load(d, row), hn::Load(d, row + kPairAway<kPieces> * kLanes),
                            out + i * kOperandRow);
      }
      out += kOperandBytes<kPieces>;
    }
  }
}

// Values as they lie, and zeros after the last one.
template <int kPieces>
void SplitValues(const AttentionArgs& args, const Extent& extent, std::byte* to) {
  const F32 d;
  const auto row = [&](int64_t j, int64_t column) HWY_ATTR {
    return j < args.keys
               ? LoadFirst(d, args.v + j * args.v_stride + column, args.v_head_dim - column)
               : hn::Zero(d);
  };
  for (int64_t first = 0; first < args.keys;
       first += kKeys, to += extent.columns * kOperandBytes<kPieces>) {
    Ask(args.v, args.v_stride, args.v_head_dim, first + kRowsAhead, kKeys, args.keys);
    for (int64_t column = 0; column < args.v_head_dim; column += kLanes) {
      std::byte* out = to + column / (2 * kLanes) * kOperandBytes<kPieces> +
                       column % (2 * kLanes) / kLanes * kTileBytes;
      for (int64_t i = 0; i < kKeys / 2; ++i) {
        const int64_t j = first + i * kPairStep<kPieces>;
        StoreParts<kPieces>(row(j, column), row(j + kPairAway<kPieces>, column),
                            out + i * kOperandRow);
      }
    }
  }
}

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET == HWY_AVX3

#endif  // include guard
