// Products of floats by weights stored as int8 by the vectors' instruction for products of bytes
// (AVX512_VNNI), exact to float32.
//
// That instruction multiplies four times as many numbers as a multiply-add of floats. A row of A
// becomes numbers of 24 bits, by the power of two that its largest magnitude asks for, and these
// three bytes, its digits: three such products take three quarters of the time of one by floats.
// What rounding a row so loses is below 2^-23 of its largest magnitude an element; sums of floats
// lose more, as they round each time that a product is added, and these are sums of integers. Each
// row is its own, and integers are summed exactly, so that neither other rows nor a division of the
// work change a bit.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/base/aligned_buffer.h"
#include "runtime/device/cpu/gemm.h"
#include "runtime/device/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/gemm_digits.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/byte_products-inl.h"
#include "runtime/device/cpu/gemm_epilogue-inl.h"
#include "runtime/device/cpu/gemm_stretch-inl.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

using D32 = hn::Rebind<int32_t, F32>;
using DU32 = hn::Rebind<uint32_t, F32>;
using V32 = hn::Vec<D32>;
using VU32 = hn::Vec<DU32>;

constexpr int kDigits = 3;  // the highest first
// Rows of a tile of C: their digits' sums are 27 of the 32 vectors.
constexpr int kDigitTileRows = 3;
// Digits of A that stay in the second-level cache beside a panel.
constexpr int64_t kMaxBytesOfA = 1 << 19;
constexpr int64_t kMostRows = 384;

// Bytes between digits of a row: whole lines, an odd number of them, so that rows do not want the
// same sets of the first-level cache.
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

// Digits of a round of rows, their scales, a panel of weights as words.
int64_t ScratchBytes(int64_t m, int64_t k, bool int8) {
  if (!int8) return 0;
  const int64_t rows = std::min(MaxRows(k), WholeTiles(m));
  const int64_t bytes = rows * (kDigits * DigitStride(k) + static_cast<int64_t>(sizeof(float))) +
                        Words(k) * kPanel * 4;
  return static_cast<int64_t>(AlignUp(static_cast<size_t>(bytes)));
}

// Writes the digits of a row of A, kDigits times `stride` bytes, of numbers from 0 to 2^24 less
// one: 2^23 is added to each. Returns what such numbers, less 2^23, are multiplied by to be the
// row; NaN where it has an infinity or no number.
float SplitRow(const float* HWY_RESTRICT a, int64_t k, uint8_t* HWY_RESTRICT digits,
               int64_t stride) {
  const F32 d;
  const D32 d32;
  const DU32 du;
  const hn::Rebind<uint8_t, F32> d8;
  V32 most = hn::Zero(d32);
  const V32 magnitude = hn::Set(d32, 0x7FFFFFFF);
  int64_t i = 0;
  for (; i + kLanes <= k; i += kLanes) {
    most = hn::Max(most, hn::And(hn::BitCast(d32, hn::LoadU(d, a + i)), magnitude));
  }
  if (i < k) {
    most = hn::Max(most, hn::And(hn::BitCast(d32, LoadPart(d, a + i, k - i)), magnitude));
  }
  const int32_t bits = hn::GetLane(hn::MaxOfLanes(d32, most));
  // The largest is below 2^(exponent + 1). Smaller ones than the least have fewer digits.
  constexpr int kLeast = -104, kInfinite = 128;
  const int exponent = std::max((bits >> 23) - 127, kLeast);
  const VF scale = hn::Set(d, std::ldexp(1.0f, 22 - std::min(exponent, 127)));
  const VU32 one_below = hn::Set(du, (1u << 24) - 1);
  const V32 half = hn::Set(d32, 1 << 23);
  const auto write = [&](VF x, int64_t at) HWY_ATTR {
    const V32 whole = hn::Add(hn::NearestInt(hn::Mul(x, scale)), half);
    const VU32 number = hn::Min(hn::BitCast(du, whole), one_below);
    hn::StoreU(hn::TruncateTo(d8, hn::ShiftRight<16>(number)), d8, digits + at);
    hn::StoreU(hn::TruncateTo(d8, hn::ShiftRight<8>(number)), d8, digits + stride + at);
    hn::StoreU(hn::TruncateTo(d8, number), d8, digits + 2 * stride + at);
  };
  for (i = 0; i + kLanes <= k; i += kLanes) write(hn::LoadU(d, a + i), i);
  if (i < k) write(LoadPart(d, a + i, k - i), i);
  return exponent == kInfinite ? std::nanf("") : std::ldexp(1.0f, exponent - 22);
}

// A row of packed weights behind the last one.
HWY_ALIGN constexpr int8_t kNoRow[kPanel] = {};

// A panel of int8, [k][kPanel], as words of four rows, [k / 4][kPanel], and what 2^7 adds to each
// column where it is added to every number of a row of A.
void MakeWords(const int8_t* HWY_RESTRICT panel, int64_t k, uint32_t* HWY_RESTRICT words,
               int32_t* HWY_RESTRICT offsets) {
  const hn::FixedTag<int8_t, 16> d8;
  const hn::FixedTag<int16_t, 8> d16;
  const hn::FixedTag<int32_t, 4> quarter;
  const hn::FixedTag<int32_t, 8> half;
  const D32 d32;
  const DU32 du;
  const VU32 offset = hn::Set(du, 0x80808080u);
  VU32 sums[kVectors] = {hn::Zero(du), hn::Zero(du), hn::Zero(du)};
  for (int64_t row = 0; row < k; row += 4, words += kPanel) {
    const int8_t* rows[4];
    for (int64_t i = 0; i < 4; ++i) rows[i] = row + i < k ? panel + (row + i) * kPanel : kNoRow;
    HWY_UNROLL(3) for (int v = 0; v < kVectors; ++v) {
      const auto row0 = hn::Load(d8, rows[0] + v * kLanes);
      const auto row1 = hn::Load(d8, rows[1] + v * kLanes);
      const auto row2 = hn::Load(d8, rows[2] + v * kLanes);
      const auto row3 = hn::Load(d8, rows[3] + v * kLanes);
      const auto low01 = hn::BitCast(d16, hn::InterleaveLower(d8, row0, row1));
      const auto low23 = hn::BitCast(d16, hn::InterleaveLower(d8, row2, row3));
      const auto high01 = hn::BitCast(d16, hn::InterleaveUpper(d8, row0, row1));
      const auto high23 = hn::BitCast(d16, hn::InterleaveUpper(d8, row2, row3));
      const auto columns0 = hn::BitCast(quarter, hn::InterleaveLower(d16, low01, low23));
      const auto columns4 = hn::BitCast(quarter, hn::InterleaveUpper(d16, low01, low23));
      const auto columns8 = hn::BitCast(quarter, hn::InterleaveLower(d16, high01, high23));
      const auto columns12 = hn::BitCast(quarter, hn::InterleaveUpper(d16, high01, high23));
      const VU32 made = hn::BitCast(du, hn::Combine(d32, hn::Combine(half, columns12, columns8),
                                                    hn::Combine(half, columns4, columns0)));
      hn::Store(made, du, words + v * kLanes);
      AccumulateBytes(sums[v], offset, made);
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    hn::StoreU(hn::BitCast(d32, sums[v]), d32, offsets + v * kLanes);
  }
}

// A panel of the weights in both forms.
struct DigitPanel {
  const int8_t* packed;    // [k][kPanel]
  const uint32_t* words;   // [k / 4][kPanel]
  const int32_t* offsets;  // [kPanel], see MakeWords
};

// Row `r` of the sums of a tile, of a row of A that is no number somewhere: as floats.
template <int kRows>
HWY_NOINLINE void SumAsFloats(const float* HWY_RESTRICT a, int64_t k,
                              const int8_t* HWY_RESTRICT panel, VF (&sums)[kRows][kVectors],
                              int r) {
  const F32 d;
  const D32 d32;
  const hn::Rebind<int8_t, F32> d8;
  VF again[kVectors] = {hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  for (int64_t i = 0; i < k; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      const auto bytes = hn::LoadU(d8, panel + i * kPanel + v * kLanes);
      again[v] =
          hn::MulAdd(hn::Set(d, a[i]), hn::ConvertTo(d, hn::PromoteTo(d32, bytes)), again[v]);
    }
  }
  for (int v = 0; v < kVectors; ++v) sums[r][v] = again[v];
}

HWY_INLINE uint32_t WordAt(const uint8_t* p) {
  uint32_t word;
  std::memcpy(&word, p, sizeof(word));
  return word;
}
// The compiler keeps `pointer` in a register of its own, in place of computing it from another one
// at each use.
HWY_INLINE const uint8_t* KeptDigits(const uint8_t* pointer) {
  asm("" : "+r"(pointer));
  return pointer;
}

// kRows rows of A, whose digits are `stride` bytes apart and whose scales are `row_scales`, times a
// panel.
template <int kRows>
HWY_NOINLINE void DigitTile(const uint8_t* HWY_RESTRICT digits, int64_t stride,
                            const float* row_scales, const GemmArgs& args, const float* a,
                            const DigitPanel& panel, Ahead ahead, const TileOut& out) {
  constexpr int kSums = kRows * kDigits;
  const F32 d;
  const D32 d32;
  const DU32 du;
  VU32 acc[kSums][kVectors];
  HWY_UNROLL(9) for (int r = 0; r < kSums; ++r) {
    HWY_UNROLL(3) for (int v = 0; v < kVectors; ++v) acc[r][v] = hn::Zero(du);
  }
  // Every third digit has a pointer; the two behind it are an index away.
  const uint8_t* HWY_RESTRICT digits3 = kSums > 3 ? KeptDigits(digits + 3 * stride) : nullptr;
  const uint8_t* HWY_RESTRICT digits6 = kSums > 6 ? KeptDigits(digits + 6 * stride) : nullptr;
  const uint32_t* HWY_RESTRICT words = panel.words;
  for (int64_t word = Words(args.k); word > 0; --word) {
    __builtin_prefetch(ahead.next, /*rw=*/0, /*locality=*/2);
    ahead.next += ahead.step;
    VU32 bv[kVectors];
    HWY_UNROLL(3) for (int v = 0; v < kVectors; ++v) bv[v] = hn::Load(du, words + v * kLanes);
    HWY_UNROLL(9) for (int r = 0; r < kSums; ++r) {
      const uint8_t* const group = r < 3 ? digits : r < 6 ? digits3 : digits6;
      const VU32 av = hn::Set(du, WordAt(group + r % 3 * stride));
      HWY_UNROLL(3) for (int v = 0; v < kVectors; ++v) AccumulateBytes(acc[r][v], av, bv[v]);
    }
    digits += 4;
    if constexpr (kSums > 3) digits3 += 4;
    if constexpr (kSums > 6) digits6 += 4;
    words += kPanel;
  }

  VF sums[kRows][kVectors];
  const VF digit = hn::Set(d, 256.0f);
  HWY_UNROLL(3) for (int v = 0; v < kVectors; ++v) {
    // All that 2^23 has added to each number is in the highest digit.
    const VU32 offsets = hn::BitCast(du, hn::Load(d32, panel.offsets + v * kLanes));
    HWY_UNROLL(3) for (int r = 0; r < kRows; ++r) {
      const auto as_float = [&](VU32 sum)
                                HWY_ATTR { return hn::ConvertTo(d, hn::BitCast(d32, sum)); };
      const VF low = hn::MulAdd(as_float(acc[3 * r + 1][v]), digit, as_float(acc[3 * r + 2][v]));
      const VF high = as_float(hn::Sub(acc[3 * r][v], offsets));
      const VF sum = hn::MulAdd(high, hn::Mul(digit, digit), low);
      sums[r][v] = hn::Mul(sum, hn::Set(d, row_scales[r]));
    }
  }
  for (int r = 0; r < kRows; ++r) {
    if (std::isnan(row_scales[r])) SumAsFloats(a + r * args.lda, args.k, panel.packed, sums, r);
  }
  FinishSums(sums, out);
}

using DigitTileFunction = void (*)(const uint8_t*, int64_t, const float*, const GemmArgs&,
                                   const float*, const DigitPanel&, Ahead, const TileOut&);
// By rows - 1.
constexpr DigitTileFunction kDigitTiles[] = {DigitTile<1>, DigitTile<2>, DigitTile<3>};

void DigitPart(const GemmArgs& args, const GemmPart& part) {
  if (part.row_begin >= part.row_end || part.panel_begin >= part.panel_end) return;
  const int64_t panels = (args.n + kPanel - 1) / kPanel;
  const auto* const scales = static_cast<const float*>(args.packed_b);
  const auto* const packed = reinterpret_cast<const int8_t*>(scales + panels * kPanel);
  const auto panel_at = [&](int64_t panel) { return packed + panel * args.k * kPanel; };
  const int64_t stride = DigitStride(args.k);
  // Rounds of one size: each of them makes all panels again.
  const int64_t m = part.row_end - part.row_begin;
  const int64_t rounds = (m + MaxRows(args.k) - 1) / MaxRows(args.k);
  const int64_t rows_of_round = WholeTiles((m + rounds - 1) / rounds);
  auto* const words = static_cast<uint32_t*>(args.scratch);
  auto* const digits = reinterpret_cast<uint8_t*>(words + Words(args.k) * kPanel);
  auto* const row_scales = reinterpret_cast<float*>(digits + rows_of_round * kDigits * stride);
  HWY_ALIGN int32_t offsets[kPanel];
  for (int64_t begin = part.row_begin; begin < part.row_end; begin += rows_of_round) {
    const int64_t rows = std::min(rows_of_round, part.row_end - begin);
    for (int64_t r = 0; r < rows; ++r) {
      row_scales[r] =
          SplitRow(args.a + (begin + r) * args.lda, args.k, digits + r * kDigits * stride, stride);
    }
    for (int64_t panel = part.panel_begin; panel < part.panel_end; ++panel) {
      MakeWords(panel_at(panel), args.k, words, offsets);
      const DigitPanel made = {panel_at(panel), words, offsets};
      const bool last = panel + 1 == part.panel_end;
      // Each tile asks for its share of the next panel.
      Ahead ahead = {reinterpret_cast<const char*>(panel_at(last ? part.panel_begin : panel + 1)),
                     4 * kPanel / TilesOf(rows, kDigitTileRows)};
      for (int64_t r = 0, count; r < rows; r += count) {
        count = std::min<int64_t>(rows - r, kDigitTileRows);
        kDigitTiles[count - 1](digits + r * kDigits * stride, stride, row_scales + r, args,
                               args.a + (begin + r) * args.lda, made, ahead,
                               TileOutOf(args, scales, begin + r, panel * kPanel, kPanel));
        ahead.next += ahead.step * Words(args.k);
      }
    }
  }
}

}  // namespace

GemmKernels MakeDigitGemmKernels(const GemmKernels& vectors) {
  GemmKernels kernels = vectors;
  kernels.tile_rows = kDigitTileRows;
  kernels.part_int8 = DigitPart;
  kernels.part_scratch_bytes = ScratchBytes;
  // Measured, see GemmCosts: a row of a panel is made into words in the time of 1.3 tiles' products
  // with it, a row tile of A into digits in that of half of one.
  kernels.int8_costs = {.panel = 1.3, .row_tile = 0.5, .shared_tile = 1.0};
  return kernels;
}

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET == HWY_AVX3

#if HWY_ONCE
namespace reprise::cpu {

const GemmKernels* DigitGemmKernelsFor(Isa isa) {
  static const GemmKernels kernels = N_AVX3::MakeDigitGemmKernels(GemmKernelsFor(Isa::kAvx512));
  return isa >= Isa::kAvx512Vnni ? &kernels : nullptr;
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
