// Attention by the tile unit (AMX) of a CPU, exact to float32 or with operands rounded to bfloat16.
//
// Both products of a head split floats into three bfloat16 parts (tile_unit-inl.h), or round them
// to one part: kPieces in the templates. A patch of scores, 32 queries by 32 keys, is laid out as
// [query][key], so that its exponentials, a vector of keys each, are in place as the rows of the
// next product, and masks are added in place.
//
// The exponentials cost the vectors about as much as the products cost the unit. So three patches
// are in progress at a time: while the unit computes the scores of one and multiplies the values by
// another, the vectors compute the exponentials of the one between, a row after every few
// instructions of the unit.
//
// Every row of a tile is independent, keys are summed in blocks that are counted from the first
// key, and keys past the last one add zeros: neither other rows nor a division of the work
// change a bit.
#include <algorithm>
#include <limits>

#include "runtime/device/cpu/attention/attention.h"
#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/attention/attention_amx.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/attention/attention_operands-inl.h"
#include "runtime/device/cpu/attention/attention_softmax-inl.h"
#include "runtime/device/cpu/simd/math-inl.h"
#include "runtime/device/cpu/simd/tile_unit-inl.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// The number of steps in which the unit multiplies one patch at one depth.
template <int kPieces>
constexpr int64_t kSteps = kPieces == 1 ? 1 : 6;

// The scratch of a call.
struct Scratch {
  Scratch(const Extent& extent, int64_t operand_bytes, void* memory) {
    auto* at = static_cast<std::byte*>(memory);
    const auto take = [&](int64_t bytes) {
      std::byte* begin = at;
      at += bytes;
      return begin;
    };
    k = take(extent.key_blocks * extent.depth * operand_bytes);
    v = take(extent.key_blocks * extent.columns * operand_bytes);
    q = take(extent.depth * operand_bytes);
    for (Patch*& patch : patches) patch = reinterpret_cast<Patch*>(take(sizeof(Patch)));
    for (Rows*& of_block : rows) of_block = reinterpret_cast<Rows*>(take(sizeof(Rows)));
    output = reinterpret_cast<float*>(take(extent.columns * kPatch * kFloatBytes));
    columns = reinterpret_cast<float*>(take(extent.depth * kDepth * kRowsOfTile * kFloatBytes));
    mask = reinterpret_cast<float*>(take(extent.key_blocks * kKeys * kFloatBytes));
    end = at;
  }

  std::byte* k;  // [key block][depth] operands
  std::byte* v;  // [key block][columns] operands
  std::byte* q;  // [depth] operands
  // Each is filled while the one before it is read.
  Patch* patches[2];
  Rows* rows[3];
  float* output;   // [two tiles of columns][query][column]
  float* columns;  // the keys of a tile, transposed
  float* mask;     // [keys], added to all queries
  std::byte* end;
};

template <int kPieces>
int64_t ScratchFloats(int64_t keys, int64_t head_dim, int64_t v_head_dim) {
  std::byte* const nowhere = nullptr;
  const Scratch scratch(Extent(keys, head_dim, v_head_dim), kOperandBytes<kPieces>, nowhere);
  return (scratch.end - nowhere) / kFloatBytes;
}

constexpr int64_t kTileStride = 64;

// Tiles 0 to 3 are sums, [row][column]; 4 and 5 a part of B, 6 and 7 a part of A.
template <int kRows, int kPart>
HWY_INLINE void LoadA(const std::byte* a) {
  Unit::Load<6>(a + kPart * 2 * kTileBytes, kTileStride);
  if constexpr (kRows > 1) Unit::Load<7>(a + (kPart * 2 + 1) * kTileBytes, kTileStride);
}
template <int kColumns, int kPart>
HWY_INLINE void LoadB(const std::byte* b) {
  Unit::Load<4>(b + kPart * 2 * kTileBytes, kTileStride);
  if constexpr (kColumns > 1) Unit::Load<5>(b + (kPart * 2 + 1) * kTileBytes, kTileStride);
}
template <int kRows, int kColumns>
HWY_INLINE void MultiplyAll() {
  Unit::MultiplyHalves<0, 6, 4>();
  if constexpr (kColumns > 1) Unit::MultiplyHalves<1, 6, 5>();
  if constexpr (kRows > 1) Unit::MultiplyHalves<2, 7, 4>();
  if constexpr (kRows > 1 && kColumns > 1) Unit::MultiplyHalves<3, 7, 5>();
}

// sums[kRows * 16][kKeys] = A B, or += where `add` is set; `depth` operands of each. The small
// partial products of each are summed first. `meanwhile` advances after each step.
template <int kPieces, int kRows, int kColumns>
void Multiply(const std::byte* a, const std::byte* b, int64_t depth, bool add, float* sums,
              Softmax<kPieces>& meanwhile) {
  constexpr int64_t kStride = kKeys * kFloatBytes;
  float* const lower = sums + kRowsOfTile * kKeys;
  if (add) {
    Unit::Load<0>(sums, kStride);
    if constexpr (kColumns > 1) Unit::Load<1>(sums + kLanes, kStride);
    if constexpr (kRows > 1) Unit::Load<2>(lower, kStride);
    if constexpr (kRows > 1 && kColumns > 1) Unit::Load<3>(lower + kLanes, kStride);
  } else {
    Unit::Zero<0>();
    Unit::Zero<1>();
    Unit::Zero<2>();
    Unit::Zero<3>();
  }
  for (int64_t i = 0; i < depth; ++i, a += kOperandBytes<kPieces>, b += kOperandBytes<kPieces>) {
    const auto step = [&]() HWY_ATTR {
      MultiplyAll<kRows, kColumns>();
      meanwhile.Step();
    };
    LoadB<kColumns, 0>(b);
    if constexpr (kPieces == 1) {
      LoadA<kRows, 0>(a);
      step();
      continue;
    }
    LoadA<kRows, 2>(a);
    step();
    LoadA<kRows, 1>(a);
    step();
    LoadB<kColumns, 1>(b);
    step();
    LoadA<kRows, 0>(a);
    step();
    LoadB<kColumns, 2>(b);
    step();
    LoadB<kColumns, 0>(b);
    step();
  }
  Unit::Store<0>(sums, kStride);
  if constexpr (kColumns > 1) Unit::Store<1>(sums + kLanes, kStride);
  if constexpr (kRows > 1) Unit::Store<2>(lower, kStride);
  if constexpr (kRows > 1 && kColumns > 1) Unit::Store<3>(lower + kLanes, kStride);
}

template <int kPieces>
void MultiplyPatch(int64_t rows, int64_t columns, const std::byte* a, const std::byte* b,
                   int64_t depth, bool add, float* sums, Softmax<kPieces>& meanwhile) {
  const bool two_rows = rows > kRowsOfTile, two_columns = columns > kLanes;
  const auto multiply = two_rows ? two_columns ? Multiply<kPieces, 2, 2> : Multiply<kPieces, 2, 1>
                        : two_columns ? Multiply<kPieces, 1, 2>
                                      : Multiply<kPieces, 1, 1>;
  multiply(a, b, depth, add, sums, meanwhile);
}

// Writes the output of queries [first, first + rows), whose sums are complete.
void Write(const AttentionArgs& args, const Extent& extent, int64_t first, int64_t rows,
           const float* from, const Rows& state) {
  const F32 d;
  // A sum is 0 only where nothing is left to attend to.
  const float of_nothing = args.zero_when_masked ? 0.0f : std::numeric_limits<float>::quiet_NaN();
  float inverse[kQueries];
  for (int64_t r = 0; r < rows; ++r) {
    const float sum = hn::GetLane(hn::SumOfLanes(d, hn::Load(d, state.sums[r])));
    inverse[r] = sum == 0 ? of_nothing : 1.0f / sum;
  }
  for (int64_t column = 0; column < args.v_head_dim; column += 2 * kLanes, from += kPatch) {
    const int64_t columns = std::min(2 * kLanes, args.v_head_dim - column);
    float* out = args.out + first * args.out_stride + column;
    for (int64_t r = 0; r < rows; ++r, out += args.out_stride) {
      const VF scale = hn::Set(d, inverse[r]);
      for (int64_t c = 0; c < columns; c += kLanes) {
        const VF x = hn::Mul(hn::Load(d, from + r * kKeys + c), scale);
        if (columns - c >= kLanes) {
          hn::StoreU(x, d, out + c);
        } else {
          StorePart(x, d, out + c, columns - c);
        }
      }
    }
  }
}

// Scales the sums so far by the factors of their rows.
HWY_NOINLINE void ScaleOutput(const Extent& extent, const float* factors, float* output) {
  const F32 d;
  for (int64_t row = 0; row < extent.columns * kQueries; ++row, output += kKeys) {
    const VF factor = hn::Set(d, factors[row % kQueries]);
    for (int64_t c = 0; c < kKeys; c += kLanes) {
      hn::Store(hn::Mul(hn::Load(d, output + c), factor), d, output + c);
    }
  }
}

// Where a patch lies.
struct Position {
  int64_t first = 0;  // query
  int64_t key_block = 0;
  int64_t block = 0;  // the block of queries
};

template <int kPieces>
void TileRows(const AttentionArgs& args, int64_t query_begin, int64_t query_end) {
  if (query_begin >= query_end) return;
  if (args.keys == 0) {
    for (int64_t r = query_begin; r < query_end; ++r) {
      std::fill_n(args.out + r * args.out_stride, args.v_head_dim, 0.0f);
    }
    return;
  }
  const TileConfig config;
  Unit::Configure(config);
  const Extent extent(args.keys, args.head_dim, args.v_head_dim);
  const Scratch scratch(extent, kOperandBytes<kPieces>, args.scratch);
  SplitKeys<kPieces>(args, extent, scratch.columns, scratch.k);
  SplitValues<kPieces>(args, extent, scratch.v);
  const Masks masks(args, scratch.mask);
  const auto rows_of = [&](const Position& at) { return std::min(kQueries, query_end - at.first); };
  const auto write = [&](const Position& at) {
    Write(args, extent, at.first, rows_of(at), scratch.output, *scratch.rows[at.block % 3]);
  };
  // Patches in the order of queries, then keys.
  const int64_t key_blocks = extent.key_blocks;
  const int64_t patches = CeilDiv(query_end - query_begin, kQueries) * key_blocks;
  Position next = {.first = query_begin}, current, previous;
  for (int64_t i = 0; i < patches + 2; ++i) {
    const bool has_next = i < patches;
    const bool has_current = i > 0 && i <= patches;
    const bool has_previous = i > 1;
    Softmax<kPieces> softmax;
    if (has_current) {
      const int64_t steps =
          kSteps<kPieces> * ((has_next ? extent.depth : 0) + (has_previous ? extent.columns : 0));
      softmax = Softmax<kPieces>(args, masks, *scratch.patches[(i - 1) % 2],
                                 *scratch.rows[current.block % 3], current.first, rows_of(current),
                                 current.key_block * kKeys, std::max<int64_t>(1, steps));
    }
    if (has_next) {
      if (next.key_block == 0) {
        SplitQueries<kPieces>(args, next.first, rows_of(next), query_end, scratch.q);
      }
      MultiplyPatch(rows_of(next), args.keys - next.key_block * kKeys, scratch.q,
                    scratch.k + next.key_block * extent.depth * kOperandBytes<kPieces>,
                    extent.depth,
                    /*add=*/false, scratch.patches[i % 2]->scores, softmax);
    }
    if (has_previous) {
      const Patch& patch = *scratch.patches[i % 2];
      const bool first = previous.key_block == 0;
      if (!first && patch.raised) ScaleOutput(extent, patch.factors, scratch.output);
      const std::byte* v = scratch.v + previous.key_block * extent.columns * kOperandBytes<kPieces>;
      for (int64_t pair = 0; pair < extent.columns; ++pair, v += kOperandBytes<kPieces>) {
        MultiplyPatch(rows_of(previous), args.v_head_dim - pair * 2 * kLanes, patch.weights, v,
                      /*depth=*/1, /*add=*/!first, scratch.output + pair * kPatch, softmax);
      }
    }
    softmax.Finish();
    // The write is as late as possible, because the unit is not done at once.
    if (has_previous && previous.key_block + 1 == key_blocks) write(previous);
    previous = current;
    current = next;
    if (++next.key_block == key_blocks) {
      next = {.first = next.first + kQueries, .block = next.block + 1};
    }
  }
  Unit::Release();
}

}  // namespace

constexpr AttentionKernels kTileAttentionKernels = {kQueries, TileRows<kParts>,
                                                    ScratchFloats<kParts>};
constexpr AttentionKernels kRoundingAttentionKernels = {kQueries, TileRows<1>, ScratchFloats<1>};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET == HWY_AVX3

#if HWY_ONCE
namespace reprise::cpu {

const AttentionKernels* TileAttentionKernelsFor(Isa isa) {
#if REPRISE_WITH_AVX512
  if (isa.Has(CpuFeature::kAmx)) return &N_AVX3::kTileAttentionKernels;
#endif
  return nullptr;
}

const AttentionKernels* RoundingAttentionKernelsFor(Isa isa) {
#if REPRISE_WITH_AVX512
  if (isa.Has(CpuFeature::kAmx)) return &N_AVX3::kRoundingAttentionKernels;
#endif
  return DotAttentionKernelsFor(isa);
}

bool SuitsTileAttention(int64_t queries, int64_t keys, int64_t head_dim) {
  // The limits were measured on an Intel Xeon (cpuid a0670): with less work, converting to tiles
  // costs more than they save. A depth of 32 is multiplied in any case.
  constexpr int64_t kFewestQueries = 16, kFewestKeys = 96, kFewestDims = 24;
  return queries >= kFewestQueries && keys >= kFewestKeys && keys <= kMostTileAttentionKeys &&
         head_dim >= kFewestDims;
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
