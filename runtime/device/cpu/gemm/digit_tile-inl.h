// Sums of gemm_block_digits.cc: a lone row, and tiles of a few, by a panel. Included inside a
// kernel file after hwy/highway.h, once for each Highway target.
#if defined(REPRISE_CPU_DIGIT_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_DIGIT_TILE_INL_H_
#undef REPRISE_CPU_DIGIT_TILE_INL_H_
#else
#define REPRISE_CPU_DIGIT_TILE_INL_H_
#endif

#include <array>
#include <utility>

#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/block_digits-inl.h"
#include "runtime/device/cpu/gemm/digit_panel-inl.h"

#if REPRISE_HAS_VNNI
HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// Rows of a tile. The sums of its digits are 24 of the 32 vectors of AVX-512, 12 of the 16 of AVX2.
template <int kDigits>
constexpr int kTall = HWY_TARGET == HWY_AVX3 ? 4 : 2;
template <>
constexpr int kTall<1> = HWY_TARGET == HWY_AVX3 ? 6 : 3;

// Returns the float sums of a vector of columns after another block; each digit has integer sums
// of its own. `factors`: of the columns, and a panel's width further on their offsets, if
// `offsets`.
template <int kDigits>
HWY_INLINE VF AddBlock(const VU32 (&digits)[kDigits][kWide], int v, const DigitBlock& row,
                       const float* factors, bool offsets, VF sums) {
  const F32 d;
  const D32 d32;
  VF sum;
  if constexpr (kDigits == 1) {
    sum = hn::ConvertTo(d, hn::BitCast(d32, digits[0][v]));
  } else {
    const auto lower = hn::BitCast(d32, hn::Add(hn::ShiftLeft<8>(digits[1][v]), digits[2][v]));
    sum = hn::MulAdd(hn::ConvertTo(d, hn::BitCast(d32, digits[0][v])), hn::Set(d, 65536.0f),
                     hn::ConvertTo(d, lower));
  }
  sums = hn::MulAdd(hn::Mul(sum, hn::LoadU(d, factors)), hn::Set(d, row.scale), sums);
  if (!offsets) return sums;
  return hn::MulAdd(hn::LoadU(d, factors + kWidth), hn::Set(d, row.sum), sums);
}

// Up to so many rows have tiles that unpack the panel on the way, each for itself. On a Zen 4 of
// 118 GF/s 1 to 8 rows make 111 to 119 so, weights near; unpacked once 1 to 4 make 80 to 105, 8
// make 113.
template <int kDigits>
constexpr int64_t kFewRows = 2 * kTall<kDigits>;

// Multiplies a few rows by a panel, unpacked on the way, into [kRows][kWidth]. `digits` are signed.
template <int kBits, int kDigits, int kRows>
HWY_NOINLINE void FewRows(const uint8_t* HWY_RESTRICT digits, int64_t stride,
                          const DigitBlock* HWY_RESTRICT facts, const DigitBlocks& blocks,
                          const char* HWY_RESTRICT panel, float* HWY_RESTRICT sums) {
  const F32 d;
  const DU32 du;
  const int64_t count = blocks.count;
  const bool offsets = blocks.factor_rows == 2;
  const auto* points = reinterpret_cast<const uint8_t*>(panel);
  const char* HWY_RESTRICT from = panel + PointBytes(blocks);
  const uint8_t* HWY_RESTRICT rows[kRows];
  VF total[kRows][kWide];
  HWY_UNROLL(6) for (int r = 0; r < kRows; ++r) {
    rows[r] = Kept(digits + r * kDigits * stride);
    HWY_UNROLL(2) for (int v = 0; v < kWide; ++v) total[r][v] = hn::Zero(d);
  }
  for (int64_t b = 0; b < count; ++b, ++facts, points += kWidth) {
    const auto* const factors = reinterpret_cast<const float*>(from);
    REPRISE_FETCH_WORDS(from)
    from += kWordBytes;
    if (offsets) from += kWordBytes;
    VU32 acc[kRows][kDigits][kWide];
    // All products of the block's zero points at once.
    HWY_UNROLL(2) for (int v = 0; v < kWide; ++v) {
      const VU32 point = hn::PromoteTo(du, hn::LoadU(DU8(), points + v * kLanes));
      HWY_UNROLL(6) for (int r = 0; r < kRows; ++r) {
        HWY_UNROLL(3) for (int digit = 0; digit < kDigits; ++digit) {
          acc[r][digit][v] = hn::Zero(du);
          AccumulatePairs(acc[r][digit][v], point, hn::Set(du, facts[r * count].less[digit]));
        }
      }
    }
    const auto step = [&](const VU32(&bytes)[kWide]) HWY_ATTR {
      HWY_UNROLL(6) for (int r = 0; r < kRows; ++r) {
        HWY_UNROLL(3) for (int digit = 0; digit < kDigits; ++digit) {
          const VU32 of_a = hn::Set(du, LoadWord(rows[r] + digit * stride));
          HWY_UNROLL(2) for (int v = 0; v < kWide; ++v) {
            AccumulateBytes(acc[r][digit][v], bytes[v], of_a);
          }
        }
        rows[r] += 4;
      }
    };
    for (int64_t word = blocks.WordsOf(b); word > 0; --word, from += kWordBytes) {
      REPRISE_FETCH_WORDS(from)
      VU32 words[kWide], bytes[kWide];
      HWY_UNROLL(2) for (int v = 0; v < kWide; ++v) {
        words[v] = hn::LoadU(du, reinterpret_cast<const uint32_t*>(from) + v * kLanes);
        bytes[v] = Bytes<kBits, 0>(words[v]);
      }
      step(bytes);
      if constexpr (kBits == 4) {
        HWY_UNROLL(2) for (int v = 0; v < kWide; ++v) bytes[v] = Bytes<kBits, 1>(words[v]);
        step(bytes);
      }
    }
    HWY_UNROLL(6) for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(2) for (int v = 0; v < kWide; ++v) {
        total[r][v] = AddBlock<kDigits>(acc[r], v, facts[r * count], factors + v * kLanes, offsets,
                                        total[r][v]);
      }
    }
  }
  HWY_UNROLL(6) for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(2) for (int v = 0; v < kWide; ++v) {
      hn::Store(total[r][v], d, sums + r * kWidth + v * kLanes);
    }
  }
}

// A tile of rows by blocks [begin, end) of a panel.
struct TileIn {
  const uint8_t* digits;  // plus 128, of the first of these blocks
  int64_t stride;
  const DigitBlock* facts;  // the next row's are `blocks.count` further on
  const DigitBlocks& blocks;
  int64_t begin, end;
  const Unpacked& unpacked;
  int per_word;
  const char* panel;
  Ahead ahead;  // prefetched meanwhile
  float* sums;  // [rows][kWidth], which are added to unless these blocks are the first
};

// Starts the sums of block `facts` of kRows rows: with minus 128 times the columns' sums, and where
// kPoints with the zero points that the unpacked numbers lack.
template <int kDigits, int kRows, bool kPoints>
HWY_INLINE void StartBlock(const TileIn& in, const DigitBlock* facts, const uint8_t* points,
                           const uint32_t* starts, VU32 (&acc)[kRows][kDigits][kWide]) {
  const DU32 du;
  HWY_UNROLL(2) for (int v = 0; v < kWide; ++v) {
    const VU32 start = hn::Load(du, starts + v * kLanes);
    HWY_UNROLL(6) for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(3) for (int digit = 0; digit < kDigits; ++digit) acc[r][digit][v] = start;
    }
  }
  if constexpr (kPoints) {
    HWY_UNROLL(2) for (int v = 0; v < kWide; ++v) {
      const VU32 point =
          hn::Sub(hn::PromoteTo(du, hn::LoadU(DU8(), points + v * kLanes)), hn::Set(du, 128));
      HWY_UNROLL(6) for (int r = 0; r < kRows; ++r) {
        HWY_UNROLL(3) for (int digit = 0; digit < kDigits; ++digit) {
          const VU32 less = hn::Set(du, facts[r * in.blocks.count].less[digit]);
          AccumulatePairs(acc[r][digit][v], point, less);
        }
      }
    }
  }
}

// kPoints: `unpacked` lacks zero points.
template <int kDigits, int kRows, bool kPoints>
HWY_NOINLINE void DigitTile(const TileIn& in) {
  const F32 d;
  const DU32 du;
  const DigitBlocks blocks = in.blocks;
  const bool offsets = blocks.factor_rows == 2;
  const int64_t stride = in.stride;
  const DigitBlock* HWY_RESTRICT facts = in.facts + in.begin;
  const auto* points = reinterpret_cast<const uint8_t*>(in.panel) + in.begin * kWidth;
  const char* HWY_RESTRICT factors = in.panel + BlockAt(blocks, in.begin);
  const uint32_t* HWY_RESTRICT words = in.unpacked.words;
  const uint32_t* HWY_RESTRICT starts = in.unpacked.starts;
  float* HWY_RESTRICT sums = in.sums;
  Ahead ahead = in.ahead;
  const uint8_t* HWY_RESTRICT rows[kRows];
  HWY_UNROLL(6) for (int r = 0; r < kRows; ++r) rows[r] = Kept(in.digits + r * kDigits * stride);
  if (in.begin == 0) {
    HWY_UNROLL(6) for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(2) for (int v = 0; v < kWide; ++v) {
        hn::Store(hn::Zero(d), d, sums + r * kWidth + v * kLanes);
      }
    }
  }
  for (int64_t b = in.begin; b < in.end; ++b, ++facts, starts += kWidth, points += kWidth) {
    VU32 acc[kRows][kDigits][kWide];
    StartBlock<kDigits, kRows, kPoints>(in, facts, points, starts, acc);
    const int64_t steps = blocks.WordsOf(b) * in.per_word;
    for (int64_t step = 0; step < steps; ++step, words += kWidth) {
      __builtin_prefetch(ahead.next, /*rw=*/0, /*locality=*/2);
      __builtin_prefetch(ahead.next + kLine, /*rw=*/0, /*locality=*/2);
      ahead.next += ahead.step;
      VU32 weights[kWide];
      HWY_UNROLL(2) for (int v = 0; v < kWide; ++v) weights[v] = hn::Load(du, words + v * kLanes);
      HWY_UNROLL(6) for (int r = 0; r < kRows; ++r) {
        HWY_UNROLL(3) for (int digit = 0; digit < kDigits; ++digit) {
          const VU32 of_a = hn::Set(du, LoadWord(rows[r] + digit * stride));
          HWY_UNROLL(2) for (int v = 0; v < kWide; ++v) {
            AccumulateBytes(acc[r][digit][v], of_a, weights[v]);
          }
        }
        rows[r] += 4;
      }
    }
    HWY_UNROLL(6) for (int r = 0; r < kRows; ++r) {
      const DigitBlock& row = facts[r * blocks.count];
      HWY_UNROLL(2) for (int v = 0; v < kWide; ++v) {
        float* const at = sums + r * kWidth + v * kLanes;
        hn::Store(
            AddBlock<kDigits>(acc[r], v, row, reinterpret_cast<const float*>(factors) + v * kLanes,
                              offsets, hn::Load(d, at)),
            d, at);
      }
    }
    factors += (blocks.factor_rows + blocks.words) * kWordBytes;
  }
}

// Multiplies rows of one digit. Their float sums stay in registers, and the steps of a block are
// unrolled where it has 32 numbers, as most have.
template <int kRows, bool kPoints>
HWY_NOINLINE void RoundedTile(const TileIn& in) {
  const F32 d;
  const DU32 du;
  const DigitBlocks blocks = in.blocks;
  const bool offsets = blocks.factor_rows == 2;
  const int64_t stride = in.stride;
  const DigitBlock* HWY_RESTRICT facts = in.facts + in.begin;
  const auto* points = reinterpret_cast<const uint8_t*>(in.panel) + in.begin * kWidth;
  const char* HWY_RESTRICT factors = in.panel + BlockAt(blocks, in.begin);
  const uint32_t* HWY_RESTRICT words = in.unpacked.words;
  const uint32_t* HWY_RESTRICT starts = in.unpacked.starts;
  Ahead ahead = in.ahead;
  // Every third row has a pointer; the two after it are an index away.
  const uint8_t* HWY_RESTRICT a = in.digits;
  const uint8_t* HWY_RESTRICT a3 = kRows > 3 ? Kept(a + 3 * stride) : nullptr;
  VF sums[kRows][kWide];
  HWY_UNROLL(6) for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(2) for (int v = 0; v < kWide; ++v) {
      sums[r][v] = in.begin == 0 ? hn::Zero(d) : hn::Load(d, in.sums + r * kWidth + v * kLanes);
    }
  }
  for (int64_t b = in.begin; b < in.end; ++b, ++facts, starts += kWidth, points += kWidth) {
    VU32 acc[kRows][1][kWide];
    StartBlock<1, kRows, kPoints>(in, facts, points, starts, acc);
    const auto step = [&](int64_t at) HWY_ATTR {
      VU32 weights[kWide];
      HWY_UNROLL(2) for (int v = 0; v < kWide; ++v) {
        weights[v] = hn::Load(du, words + at * kWidth + v * kLanes);
      }
      HWY_UNROLL(6) for (int r = 0; r < kRows; ++r) {
        const uint8_t* const group = r < 3 ? a : a3;
        const VU32 of_a = hn::Set(du, LoadWord(group + r % 3 * stride + 4 * at));
        HWY_UNROLL(2) for (int v = 0; v < kWide; ++v) {
          AccumulateBytes(acc[r][0][v], of_a, weights[v]);
        }
      }
    };
    const int64_t steps = blocks.WordsOf(b) * in.per_word;
    constexpr int kUsualSteps = 8;
    if (steps == kUsualSteps) {
      HWY_UNROLL(8) for (int at = 0; at < kUsualSteps; ++at) step(at);
    } else {
      for (int64_t at = 0; at < steps; ++at) step(at);
    }
    for (int64_t line = 0; line < steps; ++line, ahead.next += ahead.step) {
      __builtin_prefetch(ahead.next, /*rw=*/0, /*locality=*/2);
      __builtin_prefetch(ahead.next + kLine, /*rw=*/0, /*locality=*/2);
    }
    words += steps * kWidth;
    a += 4 * steps;
    if constexpr (kRows > 3) a3 += 4 * steps;
    HWY_UNROLL(6) for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(2) for (int v = 0; v < kWide; ++v) {
        sums[r][v] =
            AddBlock<1>(acc[r], v, facts[r * blocks.count],
                        reinterpret_cast<const float*>(factors) + v * kLanes, offsets, sums[r][v]);
      }
    }
    factors += (blocks.factor_rows + blocks.words) * kWordBytes;
  }
  HWY_UNROLL(6) for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(2) for (int v = 0; v < kWide; ++v) {
      hn::Store(sums[r][v], d, in.sums + r * kWidth + v * kLanes);
    }
  }
}

using DigitTileFunction = void (*)(const TileIn&);
template <int kDigits, bool kPoints, int... kRowsLessOne>
constexpr std::array<DigitTileFunction, sizeof...(kRowsLessOne)> DigitTilesOf(
    std::integer_sequence<int, kRowsLessOne...>) {
  if constexpr (kDigits == 1) {
    return {RoundedTile<kRowsLessOne + 1, kPoints>...};
  } else {
    return {DigitTile<kDigits, kRowsLessOne + 1, kPoints>...};
  }
}
template <int kDigits, bool kPoints>
constexpr auto kDigitTiles =
    DigitTilesOf<kDigits, kPoints>(std::make_integer_sequence<int, kTall<kDigits>>());

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // REPRISE_HAS_VNNI

#endif  // include guard
