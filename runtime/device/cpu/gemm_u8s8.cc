// Products of bytes on the vectors of a CPU: by their own instruction for it, where there is one,
// else widened to int16, two products of which are summed in int32. (Summing products of bytes in
// int16 would be shorter, and saturates.)
#include "runtime/device/cpu/gemm_u8s8.h"

#include <algorithm>
#include <cstring>

#include "runtime/device/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/gemm_u8s8.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/gemm_stretch-inl.h"

#ifndef REPRISE_CPU_U8S8_SHIFT_
#define REPRISE_CPU_U8S8_SHIFT_
namespace reprise::cpu {

// What packing adds to each element of B: it becomes of the sign that A is not of.
inline int ShiftOfB(bool a_signed, bool b_signed) {
  if (a_signed != b_signed) return 0;
  return a_signed ? 128 : -128;
}

}  // namespace reprise::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// Sums wrap around, so they are kept without a sign.
using U32 = hn::RebindToUnsigned<F32>;
using VU = hn::Vec<U32>;
using I32 = hn::RebindToSigned<F32>;

// A tile of C: of the vectors of AVX2 widening needs more than products of floats do.
constexpr int kByteRows = HWY_TARGET == HWY_AVX2 ? 4 : kTileRows;
constexpr int64_t kRowsAtATime = 16 * kByteRows;
static_assert(kRowsAtATime <= kMaxSplitRows);
// Words of A at a time.
constexpr int kUnrolledWords = 2;
// With few tiles only asking far ahead hides the way from memory: bytes.
constexpr int64_t kNearBytes = 1536;
constexpr int64_t kFarAheadBytes = 8192;

// How bytes are multiplied.
enum class Form { kWidened, kVnni };

#if HWY_TARGET == HWY_AVX3
// sum += four products of an unsigned and a signed byte. Of CPUs that have AVX512_VNNI.
HWY_INLINE void AccumulateBytes(VU& sum, VU unsigned_bytes, VU signed_bytes) {
  auto register_of_sum = sum.raw;
  asm("vpdpbusd %2, %1, %0"
      : "+v"(register_of_sum)
      : "v"(unsigned_bytes.raw), "v"(signed_bytes.raw));
  sum.raw = register_of_sum;
}
#endif

#if HWY_TARGET == HWY_SCALAR
// The four bytes of a word, as numbers.
struct Wide {
  int32_t bytes[4];
};
template <bool kSigned>
HWY_INLINE Wide Widened(VU words) {
  Wide wide;
  for (int i = 0; i < 4; ++i) {
    const auto byte = static_cast<uint8_t>(words.raw >> (8 * i));
    wide.bytes[i] = kSigned ? static_cast<int8_t>(byte) : byte;
  }
  return wide;
}
HWY_INLINE void AccumulateWide(VU& sum, const Wide& a, const Wide& b) {
  for (int i = 0; i < 4; ++i) sum.raw += static_cast<uint32_t>(a.bytes[i] * b.bytes[i]);
}
#else
using I16 = hn::Repartition<int16_t, F32>;
using U16 = hn::Repartition<uint16_t, F32>;
// The even and the odd bytes of words, as int16.
struct Wide {
  hn::Vec<I16> even, odd;
};
template <bool kSigned>
HWY_INLINE Wide Widened(VU words) {
  const I16 d16;
  const U16 du16;
  if constexpr (kSigned) {
    const hn::Vec<I16> pairs = hn::BitCast(d16, words);
    return {hn::ShiftRight<8>(hn::ShiftLeft<8>(pairs)), hn::ShiftRight<8>(pairs)};
  } else {
    const hn::Vec<U16> pairs = hn::BitCast(du16, words);
    return {hn::BitCast(d16, hn::And(pairs, hn::Set(du16, uint16_t{0xFF}))),
            hn::BitCast(d16, hn::ShiftRight<8>(pairs))};
  }
}
HWY_INLINE void AccumulateWide(VU& sum, const Wide& a, const Wide& b) {
  const I32 d;
  const U32 du;
  hn::Vec<I32> unused = hn::Zero(d);
  hn::Vec<I32> total = hn::BitCast(d, sum);
  total = hn::ReorderWidenMulAccumulate(d, a.even, b.even, total, unused);
  total = hn::ReorderWidenMulAccumulate(d, a.odd, b.odd, total, unused);
  sum = hn::BitCast(du, total);
}
#endif

// What the columns of a panel add to their sums, and what these are multiplied by.
struct PanelTerms {
  HWY_ALIGN uint32_t start[kPanel];   // what sums begin with
  HWY_ALIGN uint32_t center[kPanel];  // sums of a column less its zero point
  HWY_ALIGN uint32_t zero[kPanel];    // zero points of B as it is packed
  HWY_ALIGN float scale[kPanel];
};
// The same of rows; null: there is nothing to do.
struct RowTerms {
  HWY_INLINE RowTerms From(int64_t row) const {
    return {zero == nullptr ? nullptr : zero + row, sum == nullptr ? nullptr : sum + row,
            scale == nullptr ? nullptr : scale + row};
  }
  const uint32_t* zero;
  const uint32_t* sum;
  const float* scale;
};

struct ByteTileOut {
  TileOut out;
  const PanelTerms* columns;
  RowTerms rows;
  uint32_t* partial;  // as TileOut::partial
  bool integers;      // C is of int32
};

HWY_INLINE uint32_t LoadWord(const uint8_t* p) {
  uint32_t word;
  std::memcpy(&word, p, sizeof(word));
  return word;
}

// The compiler keeps `pointer` in a register of its own, in place of computing it from another one
// at each use.
HWY_INLINE const uint8_t* KeptBytes(const uint8_t* pointer) {
  asm("" : "+r"(pointer));
  return pointer;
}

// What the sums begin with; then the whole of sum less zero points is summed by itself.
template <int kRows, int kVecs>
HWY_INLINE void BeginSums(const ByteTileOut& tile, VU (&acc)[kRows][kVecs]) {
  const U32 d;
  if (tile.partial != nullptr && !tile.out.first) {
    HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
        acc[r][v] = hn::Load(d, tile.partial + r * kPanel + v * kLanes);
      }
    }
    return;
  }
  HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
    const VU start = hn::Load(d, tile.columns->start + v * kLanes);
    HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) acc[r][v] = start;
  }
  const auto subtract = [&](const uint32_t* of_rows, const uint32_t* of_columns) HWY_ATTR {
    if (of_rows == nullptr) return;
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
      const VU column = hn::Load(d, of_columns + v * kLanes);
      HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
        acc[r][v] = hn::Sub(acc[r][v], hn::Mul(hn::Set(d, of_rows[r]), column));
      }
    }
  };
  subtract(tile.rows.zero, tile.columns->center);
  subtract(tile.rows.sum, tile.columns->zero);
}

template <int kRows, int kVecs>
HWY_INLINE void EndSums(const ByteTileOut& tile, VU (&acc)[kRows][kVecs]) {
  const U32 du;
  const I32 d32;
  const F32 d;
  if (!tile.out.last) {
    HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
        hn::Store(acc[r][v], du, tile.partial + r * kPanel + v * kLanes);
      }
    }
    return;
  }
  VF sums[kRows][kVecs];
  HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
      // Integers leave as they are, through registers of floats.
      sums[r][v] =
          tile.integers ? hn::BitCast(d, acc[r][v]) : hn::ConvertTo(d, hn::BitCast(d32, acc[r][v]));
    }
  }
  if (tile.rows.scale != nullptr) {
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
      const VF scale = hn::Load(d, tile.columns->scale + v * kLanes);
      HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
        sums[r][v] = hn::Mul(sums[r][v], hn::Mul(hn::Set(d, tile.rows.scale[r]), scale));
      }
    }
  }
  FinishSums(sums, tile.out);
}

// kRows rows of A times a panel of kVecs vectors. kFew: few tiles read it, see kFewTiles.
template <Form form, bool kASigned, int kRows, int kVecs, bool kFew>
HWY_NOINLINE void ByteTile(const uint8_t* HWY_RESTRICT a, int64_t lda,
                           const uint8_t* HWY_RESTRICT b, int64_t k, Ahead ahead,
                           const ByteTileOut& tile) {
  const U32 d;
  constexpr int64_t kRowBytesOfB = int64_t{kVecs} * kLanes * 4;
  VU acc[kRows][kVecs];
  BeginSums(tile, acc);

  // Every third row of A has a pointer; the two behind it are an index away.
  const uint8_t* HWY_RESTRICT a3 = kRows > 3 ? KeptBytes(a + 3 * lda) : nullptr;
  const uint8_t* HWY_RESTRICT a6 = kRows > 6 ? KeptBytes(a + 6 * lda) : nullptr;
  // Row `u` of those of B that are next, times words of A.
  const auto step = [&](int u, const auto& word_of_row) HWY_ATTR {
    const uint8_t* HWY_RESTRICT row = b + u * kRowBytesOfB;
    if constexpr (kFew) {
      HWY_UNROLL(4) for (int64_t at = 0; at < kRowBytesOfB; at += 64) {
        __builtin_prefetch(row + kNearBytes + at, /*rw=*/0, /*locality=*/3);
        __builtin_prefetch(row + kFarAheadBytes + at, /*rw=*/0, /*locality=*/2);
      }
    } else {
      __builtin_prefetch(ahead.next, /*rw=*/0, /*locality=*/2);
      ahead.next += ahead.step;
    }
    VU bv[kVecs];
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
      bv[v] = hn::LoadU(d, reinterpret_cast<const uint32_t*>(row) + v * kLanes);
    }
    if constexpr (form == Form::kVnni) {
#if HWY_TARGET == HWY_AVX3
      HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
        const VU av = hn::Set(d, word_of_row(r));
        HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
          if constexpr (kASigned) {
            AccumulateBytes(acc[r][v], bv[v], av);
          } else {
            AccumulateBytes(acc[r][v], av, bv[v]);
          }
        }
      }
#endif
    } else {
      Wide wide[kVecs];
      HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) wide[v] = Widened<!kASigned>(bv[v]);
      HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
        const Wide of_a = Widened<kASigned>(hn::Set(d, word_of_row(r)));
        HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) AccumulateWide(acc[r][v], of_a, wide[v]);
      }
    }
  };
  const auto row_of_a = [&](int r) HWY_ATTR { return (r < 3 ? a : r < 6 ? a3 : a6) + r % 3 * lda; };
  const auto advance = [&](int64_t words) HWY_ATTR {
    a += 4 * words;
    if constexpr (kRows > 3) a3 += 4 * words;
    if constexpr (kRows > 6) a6 += 4 * words;
    b += words * kRowBytesOfB;
  };
  int64_t i = 0;
  for (; i + 4 * kUnrolledWords <= k; i += 4 * kUnrolledWords) {
    HWY_UNROLL(2) for (int u = 0; u < kUnrolledWords; ++u) {
      step(u, [&](int r) HWY_ATTR { return LoadWord(row_of_a(r) + 4 * u); });
    }
    advance(kUnrolledWords);
  }
  for (; i + 4 <= k; i += 4) {
    step(0, [&](int r) HWY_ATTR { return LoadWord(row_of_a(r)); });
    advance(1);
  }
  if (i < k) {
    // Nothing is read behind the last row of A.
    step(0, [&](int r) HWY_ATTR {
      uint32_t word = 0;
      std::memcpy(&word, row_of_a(r), static_cast<size_t>(k - i));
      return word;
    });
  }
  EndSums(tile, acc);
}

using ByteTileFunction = void (*)(const uint8_t*, int64_t, const uint8_t*, int64_t, Ahead,
                                  const ByteTileOut&);
// By rows - 1.
template <Form form, bool kASigned, int kVecs, bool kFew>
constexpr ByteTileFunction kByteTiles[] = {
    ByteTile<form, kASigned, 1, kVecs, kFew>, ByteTile<form, kASigned, 2, kVecs, kFew>,
    ByteTile<form, kASigned, 3, kVecs, kFew>, ByteTile<form, kASigned, 4, kVecs, kFew>,
#if HWY_TARGET != HWY_AVX2
    ByteTile<form, kASigned, 5, kVecs, kFew>, ByteTile<form, kASigned, 6, kVecs, kFew>,
#endif
#if HWY_TARGET == HWY_AVX3
    ByteTile<form, kASigned, 7, kVecs, kFew>, ByteTile<form, kASigned, 8, kVecs, kFew>,
#endif
};

// By rows - 1, for a panel of `vectors` vectors.
template <Form form, bool kASigned>
const ByteTileFunction* ByteTilesFor(int64_t vectors, bool few) {
  if (vectors == kVectors) {
    return few ? kByteTiles<form, kASigned, kVectors, true>
               : kByteTiles<form, kASigned, kVectors, false>;
  }
  if (vectors == 1) return kByteTiles<form, kASigned, 1, false>;
  return kByteTiles<form, kASigned, (kVectors > 2 ? 2 : 1), false>;
}

constexpr int64_t VectorsOf(int64_t columns) {
  return std::min<int64_t>((columns + kLanes - 1) / kLanes, kVectors);
}
constexpr int64_t WordRows(int64_t k) { return (k + 3) / 4; }

// Elements [column, column + live) of `points` as they are packed, 0 behind them.
HWY_INLINE VU LoadPoints(const BytePoints& points, int64_t column, int64_t live, int shift) {
  const U32 d;
  const VU shifts = hn::Set(d, static_cast<uint32_t>(shift));
  if (points.data == nullptr || points.step == 0) {
    return hn::Add(shifts, hn::Set(d, static_cast<uint32_t>(points.At(0))));
  }
  const hn::Rebind<uint8_t, U32> d8;
  const hn::Rebind<int8_t, U32> s8;
  const I32 d32;
  const auto* from = static_cast<const uint8_t*>(points.data) + column;
  alignas(64) uint8_t part[kLanes] = {};
  if (live < kLanes) {
    std::memcpy(part, from, static_cast<size_t>(live));
    from = part;
  }
  const auto bytes = hn::LoadU(d8, from);
  const auto wide = points.is_signed ? hn::PromoteTo(d32, hn::BitCast(s8, bytes))
                                     : hn::BitCast(d32, hn::PromoteTo(d, bytes));
  return hn::Add(shifts, hn::BitCast(d, wide));
}

// Of the columns from `column` on; `sums`: what they sum up to as they were before packing.
void TermsOfPanel(const U8S8Args& args, int64_t column, const int32_t* sums, PanelTerms& terms) {
  const U32 d;
  const F32 df;
  const int shift = ShiftOfB(args.a_signed, args.b_signed);
  const int64_t columns = std::min(kPanel, args.n - column);
  const bool one_zero = args.a_zero.data == nullptr || args.a_zero.step == 0;
  const VU a_zero = hn::Set(d, static_cast<uint32_t>(one_zero ? args.a_zero.At(0) : 0));
  const VU k = hn::Set(d, static_cast<uint32_t>(args.k));
  for (int64_t j = 0; j < columns; j += kLanes) {
    const int64_t live = std::min<int64_t>(columns - j, kLanes);
    const VU zero = LoadPoints(args.b_zero, column + j, live, shift);
    const VU original = hn::Sub(zero, hn::Set(d, static_cast<uint32_t>(shift)));
    const VU sum = hn::LoadU(d, reinterpret_cast<const uint32_t*>(sums) + j);
    const VU center = hn::Sub(sum, hn::Mul(k, original));
    hn::Store(zero, d, terms.zero + j);
    hn::Store(center, d, terms.center + j);
    hn::Store(hn::Sub(hn::Zero(d), hn::Mul(a_zero, center)), d, terms.start + j);
    if (args.a_scale == nullptr) continue;
    VF scale = args.b_scale_step == 0 ? hn::Set(df, *args.b_scale)
               : live == kLanes       ? hn::LoadU(df, args.b_scale + column + j)
                                      : LoadPart(df, args.b_scale + column + j, live);
    if (args.a_scale_step == 0) scale = hn::Mul(hn::Set(df, *args.a_scale), scale);
    hn::Store(scale, df, terms.scale + j);
  }
}

// Whether a zero point of B, as it is packed, is not 0 in the columns [begin, end).
bool AnyZeroPoint(const U8S8Args& args, int64_t begin, int64_t end) {
  const int shift = ShiftOfB(args.a_signed, args.b_signed);
  if (args.b_zero.data == nullptr || args.b_zero.step == 0) return args.b_zero.At(0) + shift != 0;
  const auto* points = static_cast<const uint8_t*>(args.b_zero.data);
  const auto wanted = static_cast<uint8_t>(-shift);
  uint64_t all;
  std::memset(&all, wanted, sizeof(all));
  int64_t j = begin;
  for (; j + 8 <= end; j += 8) {
    uint64_t eight;
    std::memcpy(&eight, points + j, sizeof(eight));
    if (eight != all) return true;
  }
  for (; j < end; ++j) {
    if (points[j] != wanted) return true;
  }
  return false;
}

uint32_t SumOfRow(const uint8_t* HWY_RESTRICT row, int64_t k, bool is_signed) {
  const int flip = is_signed ? 0x80 : 0;
  uint32_t sum = is_signed ? static_cast<uint32_t>(-128 * k) : 0;
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::Repartition<uint8_t, F32> d8;
  const hn::Repartition<uint64_t, F32> d64;
  const auto flips = hn::Set(d8, static_cast<uint8_t>(flip));
  auto sums = hn::Zero(d64);
  constexpr int64_t kBytes = int64_t{kLanes} * 4;
  for (; i + kBytes <= k; i += kBytes) {
    sums = hn::Add(sums, hn::SumsOf8(hn::Xor(flips, hn::LoadU(d8, row + i))));
  }
  sum += static_cast<uint32_t>(hn::GetLane(hn::SumOfLanes(d64, sums)));
#endif
  for (; i < k; ++i) sum += static_cast<uint32_t>(row[i] ^ flip);
  return sum;
}

// Rows of a block, so that their terms are found once for all panels.
class RowBlock {
 public:
  RowBlock(const U8S8Args& args, int64_t begin, int64_t end, bool with_sums) {
    const auto* a = static_cast<const uint8_t*>(args.a);
    if (with_sums) {
      for (int64_t r = begin; r < end; ++r) {
        sums_[r - begin] = SumOfRow(a + r * args.lda, args.k, args.a_signed);
      }
      terms.sum = sums_;
    }
    if (args.a_zero.data != nullptr && args.a_zero.step != 0) {
      for (int64_t r = begin; r < end; ++r) {
        zeros_[r - begin] = static_cast<uint32_t>(args.a_zero.At(r));
      }
      terms.zero = zeros_;
    }
    if (args.a_scale != nullptr && args.a_scale_step != 0) terms.scale = args.a_scale + begin;
  }
  RowBlock(const RowBlock&) = delete;

  RowTerms terms = {};

 private:
  uint32_t sums_[kRowsAtATime];
  uint32_t zeros_[kRowsAtATime];
};

// Rows [begin, end), whose terms are `rows`, of one panel at `b` with the terms `columns`; `next`:
// the panel behind it.
template <Form form>
void PanelRows(const U8S8Args& args, const uint8_t* b, const uint8_t* next, int64_t panel,
               const PanelTerms& columns, const RowTerms& rows, int64_t begin, int64_t end) {
  const auto* a = static_cast<const uint8_t*>(args.a);
  const int64_t vectors = VectorsOf(args.n - panel * kPanel);
  const int64_t row_bytes = vectors * kLanes * 4;
  const int64_t tiles = TilesOf(end - begin, kByteRows);
  const bool few = tiles < kFewTiles;
  const ByteTileFunction* functions = args.a_signed ? ByteTilesFor<form, true>(vectors, few)
                                                    : ByteTilesFor<form, false>(vectors, few);
  const int64_t depth_block = tiles == 1 ? std::max<int64_t>(args.k, 1) : 4 * StretchRows(tiles);
  const bool split = args.k > depth_block;
  const bool integers = args.a_scale == nullptr;
  GemmArgs c = {.c = static_cast<float*>(args.c), .ldc = args.ldc, .n = args.n};
  if (!integers) {
    c.bias = args.bias;
    c.residual = args.residual;
    c.ld_residual = args.ld_residual;
    c.activation = args.activation;
  }
  HWY_ALIGN uint32_t partial[kRowsAtATime * kPanel];
  int64_t depth = 0;
  do {
    const int64_t depth_end = split ? std::min(depth + depth_block, args.k) : args.k;
    const uint8_t* const stretch = b + depth / 4 * row_bytes;
    const uint8_t* const behind = depth_end == args.k ? next : b + depth_end / 4 * row_bytes;
    Ahead ahead = {reinterpret_cast<const char*>(behind), row_bytes / tiles};
    for (int64_t row = begin, count; row < end; row += count) {
      count = NextTileRows(end - row, kByteRows);
      ByteTileOut tile = {.out = TileOutOf(c, nullptr, row, panel * kPanel, kPanel),
                          .columns = &columns,
                          .rows = rows.From(row - begin),
                          .partial = split ? partial + (row - begin) * kPanel : nullptr,
                          .integers = integers};
      if (!integers && rows.scale == nullptr) tile.out.scale = columns.scale;
      tile.out.first = depth == 0;
      tile.out.last = depth_end == args.k;
      functions[count - 1](a + row * args.lda + depth, args.lda, stretch, depth_end - depth, ahead,
                           tile);
      ahead.next += ahead.step * WordRows(depth_end - depth);
    }
    depth = depth_end;
  } while (depth < args.k);
}

template <Form form>
void Part(const U8S8Args& args, const GemmPart& part) {
  const auto* sums = static_cast<const int32_t*>(args.packed_b);
  const int64_t panels = (args.n + kPanel - 1) / kPanel;
  const auto* packed = reinterpret_cast<const uint8_t*>(sums + panels * kPanel);
  const int64_t panel_bytes = WordRows(args.k) * 4 * kPanel;
  const bool with_sums =
      AnyZeroPoint(args, part.panel_begin * kPanel, std::min(args.n, part.panel_end * kPanel));
  PanelTerms terms;
  for (int64_t begin = part.row_begin; begin < part.row_end; begin += kRowsAtATime) {
    const int64_t end = std::min(begin + kRowsAtATime, part.row_end);
    const RowBlock rows(args, begin, end, with_sums);
    for (int64_t panel = part.panel_begin; panel < part.panel_end; ++panel) {
      // Behind the last one of all lie the weights of another product.
      const bool again = panel + 1 == part.panel_end && end < part.row_end;
      const int64_t next = again ? part.panel_begin : panel + 1;
      TermsOfPanel(args, panel * kPanel, sums + panel * kPanel, terms);
      PanelRows<form>(args, packed + panel * panel_bytes, packed + next * panel_bytes, panel, terms,
                      rows.terms, begin, end);
    }
  }
}

// `live` bytes of a row, zeros behind them.
HWY_INLINE VU LoadBytes(const uint8_t* from, int64_t live) {
  const U32 d;
  const hn::Rebind<uint8_t, U32> d8;
  if (live >= kLanes) return hn::PromoteTo(d, hn::LoadU(d8, from));
  alignas(64) uint8_t part[kLanes] = {};
  std::memcpy(part, from, static_cast<size_t>(live));
  return hn::PromoteTo(d, hn::Load(d8, part));
}

// The columns of one panel as rows of words; their sums, as they are in B, into `sums`.
void PackPanel(const ByteSource& b, bool a_signed, int64_t k, int64_t n, int64_t panel,
               uint8_t* packed, int32_t* sums) {
  const U32 d;
  const int64_t first = panel * kPanel;
  const int64_t columns = std::min(kPanel, n - first);
  const int64_t vectors = VectorsOf(columns);
  const VU flips =
      hn::Set(d, ShiftOfB(a_signed, b.is_signed) == 0 ? uint32_t{0} : uint32_t{0x80808080u});
  // Signed bytes are summed as what they are above -128.
  const VU raised = hn::Set(d, uint32_t{b.is_signed ? 0x80u : 0u});
  const auto* from = static_cast<const uint8_t*>(b.data) + first;
  auto* words = reinterpret_cast<uint32_t*>(packed);
  for (int64_t v = 0; v < kVectors; ++v) {
    VU sum = hn::Set(d, b.is_signed ? static_cast<uint32_t>(-128 * k) : 0u);
    if (v >= vectors) {
      hn::StoreU(hn::Zero(d), d, reinterpret_cast<uint32_t*>(sums) + v * kLanes);
      continue;
    }
    const int64_t live = std::min<int64_t>(columns - v * kLanes, kLanes);
    const auto row = [&](int64_t i) HWY_ATTR {
      const VU bytes = LoadBytes(from + i * b.ld + v * kLanes, live);
      sum = hn::Add(sum, hn::Xor(bytes, raised));
      return bytes;
    };
    int64_t i = 0;
    for (; i + 4 <= k; i += 4) {
      const VU low = hn::Or(row(i), hn::ShiftLeft<8>(row(i + 1)));
      const VU high = hn::Or(hn::ShiftLeft<16>(row(i + 2)), hn::ShiftLeft<24>(row(i + 3)));
      hn::StoreU(hn::Xor(flips, hn::Or(low, high)), d, words + (i / 4 * vectors + v) * kLanes);
    }
    if (i < k) {
      VU word = row(i);
      if (i + 1 < k) word = hn::Or(word, hn::ShiftLeft<8>(row(i + 1)));
      if (i + 2 < k) word = hn::Or(word, hn::ShiftLeft<16>(row(i + 2)));
      // Times zeros of A.
      hn::StoreU(hn::Xor(flips, word), d, words + (i / 4 * vectors + v) * kLanes);
    }
    hn::StoreU(sum, d, reinterpret_cast<uint32_t*>(sums) + v * kLanes);
  }
}

void Pack(const ByteSource& b, bool a_signed, int64_t k, int64_t n, void* packed) {
  const int64_t panels = (n + kPanel - 1) / kPanel;
  auto* sums = static_cast<int32_t*>(packed);
  auto* to = reinterpret_cast<uint8_t*>(sums + panels * kPanel);
  for (int64_t panel = 0; panel < panels; ++panel) {
    PackPanel(b, a_signed, k, n, panel, to + panel * WordRows(k) * 4 * kPanel,
              sums + panel * kPanel);
  }
}

template <Form form>
void Unpacked(const U8S8Args& args, const ByteSource& b, const GemmPart& part, void* scratch) {
  auto* const packed = static_cast<uint8_t*>(scratch);
  HWY_ALIGN int32_t sums[kPanel];
  PanelTerms terms;
  for (int64_t panel = part.panel_begin; panel < part.panel_end; ++panel) {
    const int64_t column = panel * kPanel;
    PackPanel(b, args.a_signed, args.k, args.n, panel, packed, sums);
    TermsOfPanel(args, column, sums, terms);
    const bool with_sums = AnyZeroPoint(args, column, std::min(args.n, column + kPanel));
    for (int64_t begin = part.row_begin; begin < part.row_end; begin += kRowsAtATime) {
      const int64_t end = std::min(begin + kRowsAtATime, part.row_end);
      const RowBlock rows(args, begin, end, with_sums);
      PanelRows<form>(args, packed, packed, panel, terms, rows.terms, begin, end);
    }
  }
}

}  // namespace

constexpr U8S8Kernels kU8S8Kernels = {
    kPanel, kLanes, kByteRows, Pack, Part<Form::kWidened>, Unpacked<Form::kWidened>, {}};

#if HWY_TARGET == HWY_AVX3
constexpr U8S8Kernels kU8S8VnniKernels = {
    kPanel, kLanes, kByteRows, Pack, Part<Form::kVnni>, Unpacked<Form::kVnni>, {}};
#endif

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const U8S8Kernels& U8S8KernelsFor(Isa isa) {
  if (isa >= Isa::kAvx512Vnni) return N_AVX3::kU8S8VnniKernels;
  return REPRISE_CHOOSE_TARGET(isa, kU8S8Kernels);
}

GemmPart U8S8Kernels::Partition(int64_t m, int64_t n, int parts, int part) const {
  GemmKernels sizes = {};
  sizes.panel_columns = panel_columns;
  sizes.tile_rows = tile_rows;
  sizes.costs = costs;
  return sizes.Partition(m, n, /*int8=*/false, parts, part);
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
