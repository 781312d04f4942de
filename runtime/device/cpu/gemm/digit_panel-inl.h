// The panels of gemm_block_digits.cc: where things lie, and how their words become bytes. Packed
// weights are the panels, one after another, of two vectors of columns each: the zero points of all
// blocks, a byte each, filled up to whole lines; then block by block the factors of the columns,
// their offsets where the form has them, and words of 32 bits as in gemm_blocks.h. Behind the last
// column everything is 0. Included inside a kernel file after hwy/highway.h, once for each Highway
// target.
#if defined(REPRISE_CPU_DIGIT_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_DIGIT_PANEL_INL_H_
#undef REPRISE_CPU_DIGIT_PANEL_INL_H_
#else
#define REPRISE_CPU_DIGIT_PANEL_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/gemm_block_digits.h"
#include "runtime/device/cpu/gemm/gemm_stretch-inl.h"
#include "runtime/device/cpu/simd/byte_products-inl.h"

#if REPRISE_HAS_VNNI
HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

using D32 = hn::Rebind<int32_t, F32>;
using DU32 = hn::Rebind<uint32_t, F32>;
using DU8 = hn::Rebind<uint8_t, F32>;
using DBytes = hn::Repartition<uint8_t, F32>;
using VU32 = hn::Vec<DU32>;

constexpr int kWide = 2;  // vectors of a panel
constexpr int64_t kWidth = kWide * kLanes;
constexpr int64_t kWordBytes = kWidth * int64_t{sizeof(uint32_t)};  // one word per column
// Numbers of a panel that are unpacked at a time.
constexpr int64_t kMostDepth = 1024;
// Words are asked for this many bytes ahead, into the L1 and the L2 cache: a lone row reads 31 of
// 32 GB/s of a Zen 4 so, 27 with a half of both, 13 where nothing is asked for.
constexpr int64_t kNearBytes = 4096;
constexpr int64_t kFarAheadBytes = 16384;

HWY_INLINE int64_t PointBytes(const DigitBlocks& blocks) {
  return (blocks.count * kWidth + kLine - 1) & -kLine;
}
// From a panel's begin to the factors of a block.
HWY_INLINE int64_t BlockAt(const DigitBlocks& blocks, int64_t block) {
  return PointBytes(blocks) + (blocks.factor_rows * block + blocks.WordsBefore(block)) * kWordBytes;
}
int64_t PanelBytes(const DigitBlocks& blocks) {
  const int64_t last = blocks.count - 1;
  const int64_t bytes =
      BlockAt(blocks, last) + (blocks.factor_rows + blocks.last_words) * kWordBytes;
  return (bytes + kLine - 1) & -kLine;
}
int64_t PanelsOf(int64_t n) { return (n + kWidth - 1) / kWidth; }

int64_t PackedBytes(int64_t k, int64_t n, const BlockForm& form) {
  return PanelsOf(n) * PanelBytes(DigitBlocks(form, k));
}

// Prefetches words after the ones at `from`. (No lambda: compilers drop calls that do nothing
// else.)
#define REPRISE_FETCH_WORDS(from)                                               \
  HWY_UNROLL(2) for (int64_t at = 0; at < kWordBytes; at += kLine) {            \
    __builtin_prefetch((from) + kNearBytes + at, /*rw=*/0, /*locality=*/3);     \
    __builtin_prefetch((from) + kFarAheadBytes + at, /*rw=*/0, /*locality=*/2); \
  }

// Returns the bytes of words of four bits, or the words themselves: `Half` 0 or 1 of each word.
template <int kBits, int kHalf>
HWY_INLINE VU32 Bytes(VU32 words) {
  if constexpr (kBits == 8) {
    // In a register: compilers read it again for each product.
    auto raw = words.raw;
#if HWY_TARGET == HWY_AVX3
    asm("" : "+v"(raw));
#else
    asm("" : "+x"(raw));
#endif
    words.raw = raw;
    return words;
  }
  const VU32 nibbles = hn::Set(DU32(), 0x0F0F0F0Fu);
  return hn::And(kHalf == 0 ? words : hn::ShiftRight<4>(words), nibbles);
}
template <int kBits>
constexpr int kHalves = kBits == 4 ? 2 : 1;

// A few blocks of a panel, unpacked for many rows.
struct Unpacked {
  // Signed bytes: numbers less their zero points, or of 8 bits those less 128.
  HWY_ALIGN uint32_t words[kMostDepth / 4 * kWidth];
  // For each block less 128 times the sums of these.
  HWY_ALIGN uint32_t starts[kMostDepth / DigitBlocks::kStep * kWidth];
  bool points;  // numbers of 8 bits have zero points other than 128
};

// Blocks [begin, end) of a panel.
template <int kBits>
void Unpack(const char* HWY_RESTRICT panel, const DigitBlocks& blocks, int64_t begin, int64_t end,
            Unpacked& to) {
  const DU32 du;
  const DBytes d8;
  const auto* points = reinterpret_cast<const uint8_t*>(panel) + begin * kWidth;
  const char* HWY_RESTRICT from = panel + BlockAt(blocks, begin);
  uint32_t* HWY_RESTRICT words = to.words;
  uint32_t* HWY_RESTRICT starts = to.starts;
  const VU32 middle = hn::Set(du, 0x80808080u);
  VU32 others = hn::Zero(du);
  for (int64_t b = begin; b < end; ++b, points += kWidth, starts += kWidth) {
    REPRISE_FETCH_WORDS(from)
    from += blocks.factor_rows * kWordBytes;
    VU32 less[kWide], sums[kWide];
    HWY_UNROLL(2) for (int v = 0; v < kWide; ++v) {
      const VU32 point = hn::PromoteTo(du, hn::LoadU(DU8(), points + v * kLanes));
      less[v] = kBits == 4 ? hn::Mul(point, hn::Set(du, 0x01010101u)) : middle;
      if (kBits == 8) others = hn::Or(others, hn::Xor(point, hn::Set(du, 0x80u)));
      sums[v] = hn::Zero(du);
    }
    const auto put = [&](VU32 bytes, int v, int64_t row) HWY_ATTR {
      bytes = hn::BitCast(du, hn::Sub(hn::BitCast(d8, bytes), hn::BitCast(d8, less[v])));
      AccumulateBytes(sums[v], middle, bytes);
      hn::Store(bytes, du, words + row * kWidth + v * kLanes);
    };
    for (int64_t word = blocks.WordsOf(b); word > 0; --word, from += kWordBytes) {
      REPRISE_FETCH_WORDS(from)
      HWY_UNROLL(2) for (int v = 0; v < kWide; ++v) {
        const VU32 w = hn::LoadU(du, reinterpret_cast<const uint32_t*>(from) + v * kLanes);
        put(Bytes<kBits, 0>(w), v, 0);
        if constexpr (kBits == 4) put(Bytes<kBits, 1>(w), v, 1);
      }
      words += kHalves<kBits> * kWidth;
    }
    HWY_UNROLL(2) for (int v = 0; v < kWide; ++v) {
      hn::Store(hn::Sub(hn::Zero(du), sums[v]), du, starts + v * kLanes);
    }
  }
  to.points = !hn::AllTrue(du, hn::Eq(others, hn::Zero(du)));
}

// Adds the products of one element of A to the sums of a row.
template <int kBits>
HWY_INLINE void AddElement(const DigitBlocks& blocks, const char* panel, int64_t b, int64_t at,
                           float value, VF (&sums)[kWide]) {
  constexpr int64_t kPerWord = 32 / kBits;
  const F32 d;
  const D32 d32;
  const DU32 du;
  const char* const start = panel + BlockAt(blocks, b);
  const auto* const word =
      reinterpret_cast<const uint32_t*>(start + (blocks.factor_rows + at / kPerWord) * kWordBytes);
  const int shift = static_cast<int>(at % kPerWord) * kBits;
  HWY_UNROLL(2) for (int v = 0; v < kWide; ++v) {
    const auto* const points = reinterpret_cast<const uint8_t*>(panel) + b * kWidth + v * kLanes;
    const VU32 number = hn::And(hn::ShiftRightSame(hn::LoadU(du, word + v * kLanes), shift),
                                hn::Set(du, (1u << kBits) - 1));
    const VU32 less = hn::Sub(number, hn::PromoteTo(du, hn::LoadU(DU8(), points)));
    const auto* const factors = reinterpret_cast<const float*>(start) + v * kLanes;
    VF weight = hn::Mul(hn::ConvertTo(d, hn::BitCast(d32, less)), hn::LoadU(d, factors));
    if (blocks.factor_rows == 2) weight = hn::Add(weight, hn::LoadU(d, factors + kWidth));
    sums[v] = hn::MulAdd(hn::Set(d, value), weight, sums[v]);
  }
}

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // REPRISE_HAS_VNNI

#endif  // include guard
