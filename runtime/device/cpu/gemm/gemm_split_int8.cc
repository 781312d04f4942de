// Products of floats by weights stored as int8 by the vectors' instruction for products of bytes
// (AVX512_VNNI, AVX-VNNI), exact to float32.
//
// That instruction multiplies four times as many numbers as a multiply-add of floats. A row of A
// becomes integers of 24 bits, scaled by the power of two that suits its largest magnitude, and
// each integer becomes three bytes, its digits: three such products take three quarters of the time
// of one of floats. Rounding a row loses less than 2^-23 of its largest magnitude for each element.
// Sums of floats lose that much too, as they round at each addition, while these are sums of
// integers. A few elements far larger than the others would cost them their digits: these are left
// out and added as floats (SplitRow). Rows are independent and integer sums exact, so that neither
// other rows nor a division of the work change a bit.
//
// Packed weights are the factors of all columns, the offsets of all columns (see Offsets), then the
// panels: words of four neighbours of a column, [k / 4][kWordPanel], zeros after the last row.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/base/aligned_buffer.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/gemm/gemm_split_int8.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/gemm_epilogue-inl.h"
#include "runtime/device/cpu/gemm/gemm_stretch-inl.h"
#include "runtime/device/cpu/simd/byte_products-inl.h"

#if REPRISE_HAS_VNNI
HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

using D32 = hn::Rebind<int32_t, F32>;
using DU32 = hn::Rebind<uint32_t, F32>;
using V32 = hn::Vec<D32>;
using VU32 = hn::Vec<DU32>;

constexpr int kDigits = 3;  // the highest first
// A tile of C: the sums of its rows' digits are 27 of the 32 vectors of AVX-512, 12 of the 16 of
// AVX2.
constexpr int kDigitTileRows = HWY_TARGET == HWY_AVX3 ? 3 : 2;
constexpr int kWordVectors = HWY_TARGET == HWY_AVX3 ? 3 : 2;
constexpr int64_t kWordPanel = kWordVectors * kLanes;
// Digits of A that stay in the L2 cache with a panel.
constexpr int64_t kMaxBytesOfA = 1 << 19;
constexpr int64_t kMostRows = 384;
// The bytes that a lone tile prefetches ahead, into the L1 cache.
constexpr int64_t kAheadBytes = 16 << 10;
constexpr int64_t kCrampedAheadBytes = 6 << 10;

// Bytes between digits of a row: whole lines, an odd number of them, so that rows do not share the
// same sets of the L1 cache.
constexpr int64_t DigitStride(int64_t k) { return ((k + 63) / 64 | 1) * 64; }
constexpr int64_t Words(int64_t k) { return (k + 3) / 4; }
constexpr int64_t WholeTiles(int64_t rows) {
  return (rows + kDigitTileRows - 1) / kDigitTileRows * kDigitTileRows;
}

// Rows of A at a time.
int64_t MaxRows(int64_t k) {
  const int64_t rows = kMaxBytesOfA / (kDigits * DigitStride(k));
  return std::clamp<int64_t>(rows / kDigitTileRows, 8, kMostRows / kDigitTileRows) * kDigitTileRows;
}

// An element of A that is far larger than the others of its row.
struct Outlier {
  int32_t at;
  float value;
};
constexpr int kMostOutliers = 64;

// A row of A as digits.
struct DigitRow {
  float scale;   // the factor of its numbers, less 2^23
  int outliers;  // elements that are no digits; kAll: none is
  Outlier outlier[kMostOutliers];
};
constexpr int kAll = -1;

// Returns the bytes of the digits of a round of rows, and of the other facts about them.
int64_t ScratchBytes(int64_t m, int64_t k, bool int8) {
  if (!int8) return 0;
  const int64_t rows = std::min(MaxRows(k), WholeTiles(m));
  const int64_t bytes = rows * (kDigits * DigitStride(k) + static_cast<int64_t>(sizeof(DigitRow)));
  return static_cast<int64_t>(AlignUp(static_cast<size_t>(bytes)));
}

// Magnitudes of a row: the largest, and the mean of the others.
struct Magnitudes {
  float largest, mean;
};

// Returns the magnitudes of the elements of a row that are not above `limit`; others count as 0.
// If a row has an infinity or a NaN, its largest magnitude is one.
Magnitudes MagnitudesOf(const float* HWY_RESTRICT a, int64_t k, float limit) {
  const F32 d;
  const D32 d32;
  const VF limits = hn::Set(d, limit);
  V32 bits = hn::Zero(d32);  // ordered like the magnitudes; NaN is above infinity
  VF sums = hn::Zero(d);
  for (int64_t i = 0; i < k; i += kLanes) {
    const VF x = hn::Abs(i + kLanes <= k ? hn::LoadU(d, a + i) : LoadPart(d, a + i, k - i));
    const VF inside = hn::IfThenZeroElse(hn::Gt(x, limits), x);
    bits = hn::Max(bits, hn::BitCast(d32, inside));
    sums = hn::Add(sums, inside);
  }
  const float largest = hn::GetLane(hn::BitCast(d, hn::MaxOfLanes(d32, bits)));
  return {largest, (hn::GetLane(hn::SumOfLanes(d, sums)) - largest) / static_cast<float>(k)};
}

// Returns the magnitude above which an element takes too many digits of the others: the sums
// of a row without such elements have a few times the error of float32 sums.
HWY_INLINE float MostOf(const Magnitudes& magnitudes, int64_t k) {
  const float means = std::clamp(static_cast<float>(k) / 4, 4.0f, 32.0f);
  // Smaller elements are lost in the sum of all.
  constexpr float kLost = 1.0f / 4096;
  return std::max(means * magnitudes.mean, kLost * magnitudes.largest);
}

// Returns the magnitude above which elements of a row are outliers, or NaN where there is no
// such limit. `magnitudes` describe all elements, and then the others.
HWY_NOINLINE float LimitOf(const float* a, int64_t k, Magnitudes& magnitudes) {
  constexpr int kRounds = 5;
  for (int round = 0; round < kRounds; ++round) {
    const float limit = MostOf(magnitudes, k);
    magnitudes = MagnitudesOf(a, k, limit);
    if (magnitudes.largest <= MostOf(magnitudes, k)) return limit;
  }
  return std::nanf("");
}

// Lists the elements of a row above `limit`; false where they are too many.
bool ListOutliers(const float* a, int64_t k, float limit, DigitRow& row) {
  for (int64_t i = 0; i < k; ++i) {
    if (!(std::abs(a[i]) > limit)) continue;
    if (row.outliers == kMostOutliers) return false;
    row.outlier[row.outliers++] = {static_cast<int32_t>(i), a[i]};
  }
  return true;
}

// Writes the digits of a row of A, kDigits times `stride` bytes, of numbers from 0 to 2^24 less
// one: 2^23 is added to each.
void SplitRow(const float* HWY_RESTRICT a, int64_t k, uint8_t* HWY_RESTRICT digits, int64_t stride,
              DigitRow& row) {
  const F32 d;
  const D32 d32;
  const DU32 du;
  const hn::Rebind<uint8_t, F32> d8;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  row = {.scale = 0, .outliers = 0};
  Magnitudes magnitudes = MagnitudesOf(a, k, kInfinity);
  float limit = kInfinity;
  if (magnitudes.largest > MostOf(magnitudes, k) && magnitudes.largest < kInfinity) {
    limit = LimitOf(a, k, magnitudes);
  }
  if (!(magnitudes.largest < kInfinity) || std::isnan(limit) ||
      (limit < kInfinity && !ListOutliers(a, k, limit, row))) {
    row.outliers = kAll;
    return;
  }
  // The largest is below 2^(exponent + 1). Rows of smaller numbers than the least have fewer
  // digits.
  constexpr int kLeast = -104;
  const int exponent =
      magnitudes.largest > 0 ? std::max(std::ilogb(magnitudes.largest), kLeast) : kLeast;
  row.scale = std::ldexp(1.0f, exponent - 22);
  const VF scale = hn::Set(d, std::ldexp(1.0f, 22 - exponent));
  const VF limits = hn::Set(d, limit);
  const VU32 one_below = hn::Set(du, (1u << 24) - 1);
  const V32 half = hn::Set(d32, 1 << 23);
  for (int64_t i = 0; i < k; i += kLanes) {
    const VF x = i + kLanes <= k ? hn::LoadU(d, a + i) : LoadPart(d, a + i, k - i);
    const VF inside = hn::IfThenZeroElse(hn::Gt(hn::Abs(x), limits), x);
    const V32 whole = hn::Add(hn::NearestInt(hn::Mul(inside, scale)), half);
    const VU32 number = hn::Min(hn::BitCast(du, whole), one_below);
    hn::StoreU(hn::TruncateTo(d8, hn::ShiftRight<16>(number)), d8, digits + i);
    hn::StoreU(hn::TruncateTo(d8, hn::ShiftRight<8>(number)), d8, digits + stride + i);
    hn::StoreU(hn::TruncateTo(d8, number), d8, digits + 2 * stride + i);
  }
}

// The arrays within packed weights.
struct PackedDigits {
  PackedDigits(const void* packed, int64_t k, int64_t n)
      : columns((n + kWordPanel - 1) / kWordPanel * kWordPanel),
        scales(static_cast<const float*>(packed)),
        offsets(reinterpret_cast<const int32_t*>(scales + columns)),
        words(reinterpret_cast<const uint32_t*>(offsets + columns)),
        panel_words(Words(k) * kWordPanel) {}

  const uint32_t* PanelAt(int64_t panel) const { return words + panel * panel_words; }

  int64_t columns;
  const float* scales;
  const int32_t* offsets;  // [columns]
  const uint32_t* words;
  int64_t panel_words;
};

// Four rows of 16 bytes as 16 words, one a column.
void PackFourRows(const int8_t* const* rows, uint32_t* to) {
  const hn::FixedTag<int8_t, 16> d8;
  const hn::FixedTag<int16_t, 8> d16;
  const hn::FixedTag<uint32_t, 4> quarter;
  const auto row0 = hn::LoadU(d8, rows[0]), row1 = hn::LoadU(d8, rows[1]);
  const auto row2 = hn::LoadU(d8, rows[2]), row3 = hn::LoadU(d8, rows[3]);
  const auto low01 = hn::BitCast(d16, hn::InterleaveLower(d8, row0, row1));
  const auto low23 = hn::BitCast(d16, hn::InterleaveLower(d8, row2, row3));
  const auto high01 = hn::BitCast(d16, hn::InterleaveUpper(d8, row0, row1));
  const auto high23 = hn::BitCast(d16, hn::InterleaveUpper(d8, row2, row3));
  hn::StoreU(hn::BitCast(quarter, hn::InterleaveLower(d16, low01, low23)), quarter, to);
  hn::StoreU(hn::BitCast(quarter, hn::InterleaveUpper(d16, low01, low23)), quarter, to + 4);
  hn::StoreU(hn::BitCast(quarter, hn::InterleaveLower(d16, high01, high23)), quarter, to + 8);
  hn::StoreU(hn::BitCast(quarter, hn::InterleaveUpper(d16, high01, high23)), quarter, to + 12);
}

// Columns [column, column + live) of B, live <= kWordPanel, as a panel.
void PackPanelWords(const Int8Source& b, int64_t k, int64_t column, int64_t live, uint32_t* words) {
  if (live < kWordPanel || k % 4 != 0) {
    std::memset(words, 0, static_cast<size_t>(Words(k) * kWordPanel) * sizeof(uint32_t));
  }
  if (b.transposed) {
    // Neighbours of a column lie side by side.
    for (int64_t j = 0; j < live; ++j) {
      const int8_t* HWY_RESTRICT from = b.data + (column + j) * b.ld;
      for (int64_t i = 0; i < k; i += 4) {
        std::memcpy(words + i / 4 * kWordPanel + j, from + i,
                    static_cast<size_t>(std::min<int64_t>(4, k - i)));
      }
    }
    return;
  }
  constexpr int64_t kColumns = 16;
  for (int64_t i = 0; i < k; i += 4, words += kWordPanel) {
    const int64_t count = std::min<int64_t>(4, k - i);
    const int8_t* const from = b.data + i * b.ld + column;
    int64_t j = 0;
    for (; count == 4 && j + kColumns <= live; j += kColumns) {
      const int8_t* const rows[] = {from + j, from + b.ld + j, from + 2 * b.ld + j,
                                    from + 3 * b.ld + j};
      PackFourRows(rows, words + j);
    }
    for (; j < live; ++j) {
      auto* const word = reinterpret_cast<int8_t*>(words + j);
      for (int64_t r = 0; r < count; ++r) word[r] = from[r * b.ld + j];
    }
  }
}

// Computes the growth of the sums of a panel's columns if every number of a row of A has 2^7 added.
void Offsets(const uint32_t* words, int64_t k, int32_t* offsets) {
  const D32 d32;
  const DU32 du;
  const VU32 offset = hn::Set(du, 0x80808080u);
  for (int v = 0; v < kWordVectors; ++v) {
    VU32 sum = hn::Zero(du);
    for (int64_t i = 0; i < Words(k); ++i) {
      AccumulateBytes(sum, offset, hn::LoadU(du, words + i * kWordPanel + v * kLanes));
    }
    hn::StoreU(hn::BitCast(d32, sum), d32, offsets + v * kLanes);
  }
}

void PackDigits(const Int8Source& b, int64_t k, int64_t n, float scale, void* packed) {
  const PackedDigits to(packed, k, n);
  auto* const scales = const_cast<float*>(to.scales);
  auto* const offsets = const_cast<int32_t*>(to.offsets);
  for (int64_t j = 0; j < to.columns; ++j) {
    scales[j] = j >= n ? 0 : scale * (b.scales == nullptr ? 1 : b.scales[b.one_scale ? 0 : j]);
  }
  for (int64_t column = 0; column < n; column += kWordPanel) {
    auto* const words = const_cast<uint32_t*>(to.PanelAt(column / kWordPanel));
    PackPanelWords(b, k, column, std::min(kWordPanel, n - column), words);
    Offsets(words, k, offsets + column);
  }
}

// Adds the products of one element of A to the sums of a row.
HWY_INLINE void AddElement(const uint32_t* words, int64_t at, float value,
                           VF (&sums)[kWordVectors]) {
  const F32 d;
  const D32 d32;
  const int up = static_cast<int>(24 - at % 4 * 8);
  const auto* const row = reinterpret_cast<const int32_t*>(words) + at / 4 * kWordPanel;
  HWY_UNROLL(3) for (int v = 0; v < kWordVectors; ++v) {
    const V32 word = hn::LoadU(d32, row + v * kLanes);
    const VF weight = hn::ConvertTo(d, hn::ShiftRight<24>(hn::ShiftLeftSame(word, up)));
    sums[v] = hn::MulAdd(hn::Set(d, value), weight, sums[v]);
  }
}

// Adds to the sums of a row of A the elements that are not split into digits.
HWY_NOINLINE void AddOutliers(const DigitRow& row, const float* a, int64_t k, const uint32_t* words,
                              VF (&sums)[kWordVectors]) {
  for (int i = 0; i < row.outliers; ++i) {
    AddElement(words, row.outlier[i].at, row.outlier[i].value, sums);
  }
  if (row.outliers != kAll) return;
  HWY_UNROLL(3) for (int v = 0; v < kWordVectors; ++v) sums[v] = hn::Zero(F32());
  for (int64_t i = 0; i < k; ++i) AddElement(words, i, a[i], sums);
}

// kRows rows of A, at `a`, whose digits are `stride` bytes apart, times a panel with `offsets`.
// kLone: no other tile reads it.
template <int kRows, bool kLone>
HWY_NOINLINE void DigitTile(const uint8_t* HWY_RESTRICT digits, int64_t stride,
                            const DigitRow* rows, const GemmArgs& args, const float* a,
                            const uint32_t* HWY_RESTRICT panel, const int32_t* offsets, Ahead ahead,
                            const TileOut& out) {
  constexpr int kSums = kRows * kDigits;
  const F32 d;
  const D32 d32;
  const DU32 du;
  VU32 acc[kSums][kWordVectors];
  HWY_UNROLL(9) for (int r = 0; r < kSums; ++r) {
    HWY_UNROLL(3) for (int v = 0; v < kWordVectors; ++v) acc[r][v] = hn::Zero(du);
  }
  // Every third digit has a pointer; the two after it are an index away.
  const uint8_t* HWY_RESTRICT digits3 = kSums > 3 ? Kept(digits + 3 * stride) : nullptr;
  const uint8_t* HWY_RESTRICT digits6 = kSums > 6 ? Kept(digits + 6 * stride) : nullptr;
  const uint32_t* HWY_RESTRICT words = panel;
  for (int64_t word = Words(args.k); word > 0; --word) {
    if constexpr (kLone) {
      HWY_UNROLL(3) for (int64_t at = 0; at < kWordPanel * 4; at += kLine) {
        __builtin_prefetch(ahead.next + at, /*rw=*/0, /*locality=*/3);
      }
    } else {
      __builtin_prefetch(ahead.next, /*rw=*/0, /*locality=*/2);
    }
    ahead.next += ahead.step;
    VU32 bv[kWordVectors];
    HWY_UNROLL(3) for (int v = 0; v < kWordVectors; ++v) bv[v] = hn::LoadU(du, words + v * kLanes);
    HWY_UNROLL(9) for (int r = 0; r < kSums; ++r) {
      const uint8_t* const group = r < 3 ? digits : r < 6 ? digits3 : digits6;
      const VU32 av = hn::Set(du, LoadWord(group + r % 3 * stride));
      HWY_UNROLL(3) for (int v = 0; v < kWordVectors; ++v) AccumulateBytes(acc[r][v], av, bv[v]);
    }
    digits += 4;
    if constexpr (kSums > 3) digits3 += 4;
    if constexpr (kSums > 6) digits6 += 4;
    words += kWordPanel;
  }

  VF sums[kRows][kWordVectors];
  const VF digit = hn::Set(d, 256.0f);
  HWY_UNROLL(3) for (int v = 0; v < kWordVectors; ++v) {
    // All that 2^23 has added to each number is in the highest digit.
    const VU32 offset = hn::BitCast(du, hn::LoadU(d32, offsets + v * kLanes));
    HWY_UNROLL(3) for (int r = 0; r < kRows; ++r) {
      const auto as_float = [&](VU32 sum)
                                HWY_ATTR { return hn::ConvertTo(d, hn::BitCast(d32, sum)); };
      const VF low = hn::MulAdd(as_float(acc[3 * r + 1][v]), digit, as_float(acc[3 * r + 2][v]));
      const VF high = as_float(hn::Sub(acc[3 * r][v], offset));
      const VF sum = hn::MulAdd(high, hn::Mul(digit, digit), low);
      sums[r][v] = hn::Mul(sum, hn::Set(d, rows[r].scale));
    }
  }
  for (int r = 0; r < kRows; ++r) {
    if (rows[r].outliers == 0) continue;
    AddOutliers(rows[r], a + r * args.lda, args.k, panel, sums[r]);
  }
  FinishSums(sums, out);
}

using DigitTileFunction = void (*)(const uint8_t*, int64_t, const DigitRow*, const GemmArgs&,
                                   const float*, const uint32_t*, const int32_t*, Ahead,
                                   const TileOut&);
// By rows - 1.
template <bool kLone>
constexpr DigitTileFunction kDigitTiles[] = {
    DigitTile<1, kLone>,
    DigitTile<2, kLone>,
#if HWY_TARGET == HWY_AVX3
    DigitTile<3, kLone>,
#endif
};

void DigitPart(const GemmArgs& args, const GemmPart& part) {
  if (part.row_begin >= part.row_end || part.panel_begin >= part.panel_end) return;
  const PackedDigits packed(args.packed_b, args.k, args.n);
  const int64_t stride = DigitStride(args.k);
  // The rounds have one size, because each of them reads all panels again.
  const int64_t m = part.row_end - part.row_begin;
  const int64_t rounds = (m + MaxRows(args.k) - 1) / MaxRows(args.k);
  const int64_t rows_of_round = WholeTiles((m + rounds - 1) / rounds);
  auto* const digits = static_cast<uint8_t*>(args.scratch);
  auto* const digit_rows = reinterpret_cast<DigitRow*>(digits + rows_of_round * kDigits * stride);
  for (int64_t begin = part.row_begin; begin < part.row_end; begin += rows_of_round) {
    const int64_t rows = std::min(rows_of_round, part.row_end - begin);
    for (int64_t r = 0; r < rows; ++r) {
      SplitRow(args.a + (begin + r) * args.lda, args.k, digits + r * kDigits * stride, stride,
               digit_rows[r]);
    }
    const int64_t tiles = TilesOf(rows, kDigitTileRows);
    const DigitTileFunction* const functions = tiles == 1 ? kDigitTiles<true> : kDigitTiles<false>;
    for (int64_t panel = part.panel_begin; panel < part.panel_end; ++panel) {
      const uint32_t* const words = packed.PanelAt(panel);
      const int64_t next = panel + 1 == part.panel_end ? part.panel_begin : panel + 1;
      // Each tile prefetches its share of the next panel.
      Ahead ahead = {reinterpret_cast<const char*>(packed.PanelAt(next)), 4 * kWordPanel / tiles};
      if (tiles == 1) {
        ahead.next = reinterpret_cast<const char*>(words) +
                     (RoomyCache() ? kAheadBytes : kCrampedAheadBytes);
      }
      for (int64_t r = 0, count; r < rows; r += count) {
        count = std::min<int64_t>(rows - r, kDigitTileRows);
        functions[count - 1](
            digits + r * kDigits * stride, stride, digit_rows + r, args,
            args.a + (begin + r) * args.lda, words, packed.offsets + panel * kWordPanel, ahead,
            TileOutOf(args, packed.scales, begin + r, panel * kWordPanel, kWordPanel));
        ahead.next += ahead.step * Words(args.k);
      }
    }
  }
}

}  // namespace

constexpr GemmKernels kDigitGemmKernels = {
    .panel_columns = kWordPanel,
    .vector_columns = kLanes,
    .tile_rows = kDigitTileRows,
    .pack_int8 = PackDigits,
    .part_int8 = DigitPart,
    .part_scratch_bytes = ScratchBytes,
    // Splitting a row tile of A into digits takes half of the time of its products with a panel.
    .int8_costs = {.panel = 0.5, .row_tile = 0.5, .shared_tile = 1.0},
    .int8_words = true};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // REPRISE_HAS_VNNI

#if HWY_ONCE
namespace reprise::cpu {

const GemmKernels* DigitGemmKernelsFor(Isa isa) {
#if REPRISE_WITH_AVX512
  if (isa.Has(CpuFeature::kAvx512Vnni)) return &N_AVX3::kDigitGemmKernels;
#endif
#if REPRISE_WITH_AVX2
  if (isa.Has(CpuFeature::kAvxVnni) && !isa.Has(CpuFeature::kAvx512))
    return &N_AVX2::kDigitGemmKernels;
#endif
  return nullptr;
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
