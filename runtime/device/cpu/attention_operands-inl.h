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
#include "runtime/device/cpu/attention.h"
#include "runtime/device/cpu/math-inl.h"
#include "runtime/device/cpu/tile_unit-inl.h"
#include "runtime/device/cpu/transpose-inl.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = HWY_LANES(float);
// Queries of a block: two tiles of rows, which share what is loaded of keys and values. Keys of a
// block: the depth of the second product.
constexpr int64_t kQueries = 2 * kRowsOfTile;
constexpr int64_t kKeys = kDepth;
constexpr int64_t kPatch = kQueries * kKeys;
constexpr int64_t kFloatBytes = sizeof(float);
// One side of a product for one depth, [part][two tiles]: the second tile may be absent.
constexpr int64_t kOperandBytes = kParts * 2 * kTileBytes;

constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// How many tiles there are of what.
struct Extent {
  explicit Extent(int64_t keys, int64_t head_dim, int64_t v_head_dim)
      : key_blocks(CeilDiv(keys, kKeys)),
        depth(CeilDiv(head_dim, kDepth)),
        columns(CeilDiv(v_head_dim, 2 * kRowsOfTile)) {}
  int64_t key_blocks;
  int64_t depth;    // of a score
  int64_t columns;  // pairs of tiles of V's columns
};

// Parts of a pair of vectors, those of one lane in one lane of `to`, a row of an operand.
HWY_INLINE void StoreParts(VF low, VF high, std::byte* to) {
  const Bits du;
  const Split low_parts = SplitFloat(low), high_parts = SplitFloat(high);
  HWY_UNROLL(3) for (int p = 0; p < kParts; ++p) {
    hn::Store(Pair(low_parts.parts[p], high_parts.parts[p]), du,
              reinterpret_cast<uint32_t*>(to + p * 2 * kTileBytes));
  }
}
constexpr int64_t kOperandRow = kLanes * kFloatBytes;

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
void SplitQueries(const AttentionArgs& args, int64_t first, int64_t rows, int64_t query_end,
                  std::byte* to) {
  const F32 d;
  const VF scale = hn::Set(d, args.scale);
  Ask(args.q, args.q_stride, args.head_dim, first + rows, kQueries, query_end);
  for (int64_t r = 0; r < rows; ++r, to += kOperandRow) {
    const float* HWY_RESTRICT from = args.q + (first + r) * args.q_stride;
    std::byte* out = to;
    for (int64_t at = 0; at < args.head_dim; at += kDepth, out += kOperandBytes) {
      StoreParts(hn::Mul(LoadFirst(d, from + at, args.head_dim - at), scale),
                 hn::Mul(LoadFirst(d, from + at + kLanes, args.head_dim - at - kLanes), scale),
                 out);
    }
  }
}

// Keys as columns. Those behind the last one repeat it.
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
    std::byte* out =
        to + first / kKeys * extent.depth * kOperandBytes + first % kKeys / kLanes * kTileBytes;
    for (int64_t block = 0; block < extent.depth; ++block, from += kDepth * kLanes) {
      for (int64_t i = 0; i < kDepth / 2; ++i) {
        StoreParts(hn::Load(d, from + i * kLanes), hn::Load(d, from + (i + kDepth / 2) * kLanes),
                   out + i * kOperandRow);
      }
      out += kOperandBytes;
    }
  }
}

// Values as they lie, and zeros behind the last one.
void SplitValues(const AttentionArgs& args, const Extent& extent, std::byte* to) {
  const F32 d;
  const auto row = [&](int64_t j, int64_t column) HWY_ATTR {
    return j < args.keys
               ? LoadFirst(d, args.v + j * args.v_stride + column, args.v_head_dim - column)
               : hn::Zero(d);
  };
  for (int64_t first = 0; first < args.keys; first += kKeys, to += extent.columns * kOperandBytes) {
    Ask(args.v, args.v_stride, args.v_head_dim, first + kRowsAhead, kKeys, args.keys);
    for (int64_t column = 0; column < args.v_head_dim; column += kLanes) {
      std::byte* out =
          to + column / (2 * kLanes) * kOperandBytes + column % (2 * kLanes) / kLanes * kTileBytes;
      for (int64_t i = 0; i < kKeys / 2; ++i) {
        StoreParts(row(first + i, column), row(first + i + kKeys / 2, column),
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
