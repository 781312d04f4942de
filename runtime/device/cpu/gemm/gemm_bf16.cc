// Products of bfloat16 on the vectors of a CPU: by their own instruction for it, where there is
// one, else widened in registers.
#include "runtime/device/cpu/gemm/gemm_bf16.h"

#include <algorithm>
#include <cstring>

#include "runtime/device/cpu/simd/targets.h"
#include "runtime/graph/tensor.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/gemm/gemm_bf16.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/bf16-inl.h"
#include "runtime/device/cpu/gemm/gemm_epilogue-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// A tile of C: 12 x 32 floats are 24 of the 32 vectors of AVX-512, 6 x 16 are 12 of the 16 of AVX2.
constexpr int kBf16Rows = HWY_TARGET == HWY_AVX3 ? 12 : 6;
// The limit on rounded rows of A, which stay in the L2 cache while all panels pass by.
constexpr int64_t kMaxBytesOfA = 1 << 18;
// With few rows a panel streams so fast that only prefetching this many words ahead hides the
// memory.
constexpr int64_t kNear = 512;
constexpr int64_t kFar = 2048;

// How A lies in scratch: row by row, as floats or as words of pairs.
enum class Form { kFloats, kPairs };

// Words from one row to the next: a line more than needed, so that rows a power of two apart do not
// share one set of the cache.
template <Form form>
constexpr int64_t RowWords(int64_t k) {
  return PairRows(k) * (form == Form::kFloats ? 2 : 1) + 16;
}
template <Form form>
constexpr int64_t RowsAtATime(int64_t k) {
  const int64_t rows = kMaxBytesOfA / (RowWords<form>(k) * 4);
  return std::max<int64_t>(1, rows / kBf16Rows) * kBf16Rows;
}
template <Form form>
int64_t PartScratchBytes(int64_t m, int64_t k) {
  return std::min(m, RowsAtATime<form>(k)) * RowWords<form>(k) * 4;
}

// `count` floats rounded, and zeros up to `padded` (at most kBf16Depth more).
void RoundRow(const float* HWY_RESTRICT from, int64_t count, int64_t padded,
              float* HWY_RESTRICT to) {
  const F32 d;
  const U32 du;
  auto* out = reinterpret_cast<uint32_t*>(to);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    hn::StoreU(RoundToBf16(hn::LoadU(d, from + i)), du, out + i);
  }
  if (i < count) {
    HWY_ALIGN float rest[kLanes] = {};
    std::copy(from + i, from + count, rest);
    hn::StoreU(RoundToBf16(hn::Load(d, rest)), du, out + i);
    i += kLanes;
  }
  for (; i < padded; ++i) out[i] = 0;
}

#if HWY_TARGET == HWY_AVX3
// Rounds to words of two, the first in the lower half, with zeros up to a whole kBf16Depth.
void RoundPairs(const float* HWY_RESTRICT from, int64_t count, uint32_t* HWY_RESTRICT to) {
  static_assert(kBf16Depth == 2 * kLanes);
  const F32 d;
  const U32 du;
  const auto store = [&](const float* floats, int64_t word) HWY_ATTR {
    const VU first = RoundToBf16(hn::LoadU(d, floats));
    const VU second = RoundToBf16(hn::LoadU(d, floats + kLanes));
    const VU low = hn::ShiftRight<16>(hn::ConcatEven(du, second, first));
    hn::StoreU(hn::Or(low, hn::ConcatOdd(du, second, first)), du, to + word);
  };
  int64_t i = 0;
  for (; i + kBf16Depth <= count; i += kBf16Depth) store(from + i, i / 2);
  if (i < count) {
    HWY_ALIGN float rest[kBf16Depth] = {};
    std::copy(from + i, from + count, rest);
    store(rest, i / 2);
  }
}
#endif

// Rows [0, rows) of A into scratch.
template <Form form>
void RoundRows(const float* a, int64_t lda, int64_t rows, int64_t k, float* to) {
  for (int64_t r = 0; r < rows; ++r, a += lda, to += RowWords<form>(k)) {
    if constexpr (form == Form::kFloats) {
      RoundRow(a, k, 2 * PairRows(k), to);
    } else {
#if HWY_TARGET == HWY_AVX3
      RoundPairs(a, k, reinterpret_cast<uint32_t*>(to));
#endif
    }
  }
}

// kRows rows of A (as `form` lies in scratch) times a panel.
template <int kRows, Form form>
HWY_NOINLINE void Bf16Tile(const float* HWY_RESTRICT a, int64_t lda, const uint32_t* HWY_RESTRICT b,
                           int64_t pairs, const TileOut& out) {
  const F32 d;
  const U32 du;
  VF acc[kRows][kBf16Vectors];
  HWY_UNROLL(12) for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(2) for (int v = 0; v < kBf16Vectors; ++v) acc[r][v] = hn::Zero(d);
  }
  // Every third row of A has a pointer; the two after it are an index away.
  const float* HWY_RESTRICT a3 = kRows > 3 ? Kept(a + 3 * lda) : nullptr;
  const float* HWY_RESTRICT a6 = kRows > 6 ? Kept(a + 6 * lda) : nullptr;
  const float* HWY_RESTRICT a9 = kRows > 9 ? Kept(a + 9 * lda) : nullptr;
  constexpr int kStep = form == Form::kFloats ? 2 : 1;
  for (int64_t i = 0; i < pairs; ++i) {
    HWY_UNROLL(2) for (int v = 0; v < kBf16Vectors; ++v) {
      __builtin_prefetch(b + kNear + v * kLanes, /*rw=*/0, /*locality=*/3);
      __builtin_prefetch(b + kFar + v * kLanes, /*rw=*/0, /*locality=*/2);
    }
    VU words[kBf16Vectors];
    HWY_UNROLL(2) for (int v = 0; v < kBf16Vectors; ++v) {
      words[v] = hn::LoadU(du, b + v * kLanes);
    }
    if constexpr (form == Form::kPairs) {
#if HWY_TARGET == HWY_AVX3
      HWY_UNROLL(12) for (int r = 0; r < kRows; ++r) {
        const float* group = r < 3 ? a : r < 6 ? a3 : r < 9 ? a6 : a9;
        const VF av = hn::Set(d, group[r % 3 * lda]);
        HWY_UNROLL(2) for (int v = 0; v < kBf16Vectors; ++v) {
          AccumulatePairs(acc[r][v], av, hn::BitCast(d, words[v]));
        }
      }
#endif
    } else {
      VF low[kBf16Vectors], high[kBf16Vectors];
      HWY_UNROLL(2) for (int v = 0; v < kBf16Vectors; ++v) {
        high[v] = hn::BitCast(d, hn::And(words[v], hn::Set(du, 0xFFFF0000u)));
        low[v] = hn::BitCast(d, hn::ShiftLeft<16>(words[v]));
      }
      HWY_UNROLL(12) for (int r = 0; r < kRows; ++r) {
        const float* group = r < 3 ? a : r < 6 ? a3 : r < 9 ? a6 : a9;
        const VF a_high = hn::Set(d, group[r % 3 * lda + 1]);
        HWY_UNROLL(2) for (int v = 0; v < kBf16Vectors; ++v) {
          Accumulate(acc[r][v], a_high, high[v]);
        }
      }
      HWY_UNROLL(12) for (int r = 0; r < kRows; ++r) {
        const float* group = r < 3 ? a : r < 6 ? a3 : r < 9 ? a6 : a9;
        const VF a_low = hn::Set(d, group[r % 3 * lda]);
        HWY_UNROLL(2) for (int v = 0; v < kBf16Vectors; ++v) Accumulate(acc[r][v], a_low, low[v]);
      }
    }
    b += kBf16Panel;
    a += kStep;
    if constexpr (kRows > 3) a3 += kStep;
    if constexpr (kRows > 6) a6 += kStep;
    if constexpr (kRows > 9) a9 += kStep;
  }

  FinishSums(acc, out);
}

using Bf16TileFunction = void (*)(const float*, int64_t, const uint32_t*, int64_t, const TileOut&);
// By rows - 1.
template <Form form>
constexpr Bf16TileFunction kBf16Tiles[] = {
    Bf16Tile<1, form>,  Bf16Tile<2, form>,  Bf16Tile<3, form>,
    Bf16Tile<4, form>,  Bf16Tile<5, form>,  Bf16Tile<6, form>,
#if HWY_TARGET == HWY_AVX3
    Bf16Tile<7, form>,  Bf16Tile<8, form>,  Bf16Tile<9, form>,
    Bf16Tile<10, form>, Bf16Tile<11, form>, Bf16Tile<12, form>,
#endif
};

// Returns the rows of the next tile. A tile of one or two rows waits for its own sums, so a tail
// that is a little longer than a tile is split in halves.
int64_t NextRows(int64_t remaining) {
  if (remaining <= kBf16Rows) return remaining;
  return remaining < kBf16Rows + 4 ? (remaining + 1) / 2 : kBf16Rows;
}

template <Form form>
void Part(const GemmArgs& args, const float* scales, const GemmPart& part) {
  if (part.panel_begin >= part.panel_end) return;
  auto* const scratch = static_cast<float*>(args.scratch);
  const auto* const packed = static_cast<const uint32_t*>(args.packed_b);
  const int64_t lda = RowWords<form>(args.k);
  const int64_t pairs = (args.k + 1) / 2;
  for (int64_t begin = part.row_begin; begin < part.row_end; begin += RowsAtATime<form>(args.k)) {
    const int64_t end = std::min(begin + RowsAtATime<form>(args.k), part.row_end);
    RoundRows<form>(args.a + begin * args.lda, args.lda, end - begin, args.k, scratch);
    for (int64_t panel = part.panel_begin; panel < part.panel_end; ++panel) {
      for (int64_t row = begin, rows; row < end; row += rows) {
        rows = NextRows(end - row);
        kBf16Tiles<form>[rows - 1](scratch + (row - begin) * lda, lda,
                                   packed + panel * PanelWords(args.k), pairs,
                                   TileOutOf(args, scales, row, panel * kBf16Panel, kBf16Panel));
      }
    }
  }
}

// Packs one panel, element by element; `at(row, column)` is a float.
template <class At>
void PackPanel(int64_t k, int64_t columns, const At& at, uint32_t* to) {
  std::memset(to, 0, static_cast<size_t>(PanelWords(k)) * sizeof(uint32_t));
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < k; ++i) {
      const uint32_t bits = FloatToBFloat16(at(i, j));
      to[i / 2 * kBf16Panel + j] |= i % 2 == 0 ? bits : bits << 16;
    }
  }
}

// Packs one whole panel of rows that lie `ld` apart.
void PackRows(const float* from, int64_t ld, int64_t k, uint32_t* to) {
  const F32 d;
  const U32 du;
  for (int64_t i = 0; i < 2 * PairRows(k); i += 2, to += kBf16Panel, from += 2 * ld) {
    HWY_UNROLL(2) for (int v = 0; v < kBf16Vectors; ++v) {
      const VU low = i < k ? RoundToBf16(hn::LoadU(d, from + v * kLanes)) : hn::Zero(du);
      const VU high = i + 1 < k ? RoundToBf16(hn::LoadU(d, from + ld + v * kLanes)) : hn::Zero(du);
      hn::StoreU(hn::Or(hn::ShiftRight<16>(low), high), du, to + v * kLanes);
    }
  }
}

void Pack(const GemmSource& b, int64_t k, int64_t n, void* packed) {
  auto* to = static_cast<uint32_t*>(packed);
  for (int64_t column = 0; column < n; column += kBf16Panel, to += PanelWords(k)) {
    const int64_t columns = std::min(kBf16Panel, n - column);
    if (b.transposed) {
      PackPanel(
          k, columns, [&](int64_t i, int64_t j) { return b.data[(column + j) * b.ld + i]; }, to);
    } else if (columns == kBf16Panel) {
      PackRows(b.data + column, b.ld, k, to);
    } else {
      PackPanel(
          k, columns, [&](int64_t i, int64_t j) { return b.data[i * b.ld + column + j]; }, to);
    }
  }
}

void PackInt8(const Int8Source& b, int64_t k, int64_t n, void* packed) {
  auto* to = static_cast<uint32_t*>(packed);
  const int64_t row_step = b.transposed ? 1 : b.ld, column_step = b.transposed ? b.ld : 1;
  for (int64_t column = 0; column < n; column += kBf16Panel, to += PanelWords(k)) {
    const int8_t* from = b.data + column * column_step;
    PackPanel(
        k, std::min(kBf16Panel, n - column),
        [&](int64_t i, int64_t j) {
          return static_cast<float>(from[i * row_step + j * column_step]);
        },
        to);
  }
}

}  // namespace

constexpr Bf16Kernels kBf16Kernels = {
    kBf16Panel, kBf16Rows, Pack, PackInt8, Part<Form::kFloats>, PartScratchBytes<Form::kFloats>,
    {}};

#if HWY_TARGET == HWY_AVX3
constexpr Bf16Kernels kBf16DotKernels = {
    kBf16Panel, kBf16Rows, Pack, PackInt8, Part<Form::kPairs>, PartScratchBytes<Form::kPairs>, {}};
#endif

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const Bf16Kernels& Bf16KernelsFor(Isa isa) { return REPRISE_CHOOSE_TARGET(isa, kBf16Kernels); }

const Bf16Kernels* Bf16DotKernelsFor(Isa isa) {
#if REPRISE_WITH_AVX512
  if (isa.Has(CpuFeature::kAvx512Bf16)) return &N_AVX3::kBf16DotKernels;
#endif
  return nullptr;
}

GemmPart Bf16Kernels::Partition(int64_t m, int64_t n, int parts, int part) const {
  GemmKernels sizes = {};
  sizes.panel_columns = panel_columns;
  sizes.tile_rows = tile_rows;
  sizes.costs = costs;
  return sizes.Partition(m, n, /*int8=*/false, parts, part);
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
