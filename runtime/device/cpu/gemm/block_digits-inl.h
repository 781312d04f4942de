// Rows of A as digits: each block along k becomes integers of 24 bits, scaled by the power of two
// that suits its largest magnitude, and each integer becomes three bytes. Rounding loses at most
// 2^-23 of a block's largest magnitude for each element, as much as sums of floats lose.
// Elements far larger than the others of their block would cost them their digits: they are left
// out, and added as floats. Where rows may be rounded to bytes they have one digit, as
// ops/products/round_rows.h says. Included inside a kernel file after hwy/highway.h, once for each
// Highway target.
#if defined(REPRISE_CPU_BLOCK_DIGITS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_BLOCK_DIGITS_INL_H_
#undef REPRISE_CPU_BLOCK_DIGITS_INL_H_
#else
#define REPRISE_CPU_BLOCK_DIGITS_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/gemm_block_digits.h"
#include "runtime/device/cpu/gemm/gemm_epilogue-inl.h"
#include "runtime/device/cpu/simd/byte_products-inl.h"
#include "runtime/ops/products/round_rows.h"

#if REPRISE_HAS_VNNI
HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// Digits of numbers as exact as floats: the highest first, each from -128 to 127. Rounded numbers
// have one.
constexpr int kExactDigits = 3;
constexpr uint32_t kDigitsOffset = 0x808080;
constexpr float kLargestNumber = 0x7F7F7F;  // that has three digits
constexpr int kMostOutliers = 64;
constexpr int kAll = -1;

// A block of a row: the factor of its integers (a power of two, unless rounded), their sum times
// that, and
// the sum of each of their digits, negated, in the low half of a word whose other half is 0.
struct DigitBlock {
  float scale;
  float sum;
  uint32_t less[kExactDigits];
};

// The elements of a row that its digits leave out.
struct DigitOutliers {
  int count;  // kAll: the row has infinities or no numbers, or too many outliers
  int32_t block[kMostOutliers];
  int32_t at[kMostOutliers];  // counted from where its block begins
  float value[kMostOutliers];
};

// Bytes between digits of a row: whole lines, an odd number of them, so that rows do not share the
// same sets of the L1 cache; a vector may be written past the last.
constexpr int64_t BlockDigitStride(int64_t k) { return ((k + 63 + kLanes) / 64 | 1) * 64; }

// In a word of eight numbers of four bits the even ones come first.
alignas(64) constexpr int32_t kEvenFirst[] = {0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15};

// Returns the magnitude above which elements of a block are outliers.
HWY_NOINLINE float OutlierLimit(const float* a, int64_t count) {
  constexpr int kRounds = 5;
  constexpr float kMostMeans = 16;
  float limit = std::numeric_limits<float>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    float largest = 0, sum = 0, others = -1;
    for (int64_t i = 0; i < count; ++i) {
      const float x = std::abs(a[i]);
      if (x > limit || x == 0) continue;  // Zeros have no digits to lose.
      largest = std::max(largest, x);
      sum += x;
      ++others;
    }
    const float most = kMostMeans * (sum - largest) / others;
    if (others <= 0 || !(largest > most)) break;
    limit = most;
  }
  return limit;
}

// Splits the `count` numbers of block `index`, which begins at `first`; false where they are not
// finite.
template <bool kPairs>
HWY_INLINE bool SplitBlock(const float* HWY_RESTRICT a, int64_t index, int64_t first, int64_t count,
                           uint32_t flip, uint8_t* HWY_RESTRICT digits, int64_t stride,
                           DigitBlock& block, DigitOutliers& outliers) {
  const F32 d;
  const hn::Rebind<int32_t, F32> d32;
  const hn::Rebind<uint32_t, F32> du;
  const hn::Rebind<uint8_t, F32> d8;
  const auto load = [&](int64_t i) HWY_ATTR {
    return i + kLanes <= count ? hn::LoadU(d, a + first + i)
                               : LoadPart(d, a + first + i, count - i);
  };
  auto most = hn::Zero(d32);  // ordered like the magnitudes; NaN is above infinity
  VF sums = hn::Zero(d);
  for (int64_t i = 0; i < count; i += kLanes) {
    const VF x = hn::Abs(load(i));
    most = hn::Max(most, hn::BitCast(d32, x));
    sums = hn::Add(sums, x);
  }
  float largest = hn::GetLane(hn::BitCast(d, hn::MaxOfLanes(d32, most)));
  const float sum = hn::GetLane(hn::SumOfLanes(d, sums));
  if (!(largest < std::numeric_limits<float>::infinity())) return false;
  float limit = largest;
  constexpr float kSuspicious = 16;
  if (largest * static_cast<float>(count) > kSuspicious * (sum - largest)) {
    limit = std::min(limit, OutlierLimit(a + first, count));
    float inside = 0;
    for (int64_t i = 0; limit < largest && i < count; ++i) {
      const float x = a[first + i];
      if (std::abs(x) <= limit) {
        inside = std::max(inside, std::abs(x));
      } else if (outliers.count == kMostOutliers) {
        return false;
      } else {
        outliers.block[outliers.count] = static_cast<int32_t>(index);
        outliers.at[outliers.count] = static_cast<int32_t>(i);
        outliers.value[outliers.count++] = x;
      }
    }
    if (limit < largest) largest = inside;
  }
  // 2^(exponent + 1) is above the largest, and kLargestNumber 2^(exponent - 22) not below it.
  // Blocks of smaller numbers than the least exponent have fewer digits.
  constexpr int kBias = 127, kMantissaBits = 23, kLeast = -104;
  uint32_t bits;
  const float above = largest * (float{1 << 23} / kLargestNumber + 1e-6f);
  std::memcpy(&bits, &above, sizeof(bits));
  const int exponent = std::max(static_cast<int>(bits >> kMantissaBits) - kBias, kLeast);
  const auto power_of_two = [](int power) {
    const uint32_t word = static_cast<uint32_t>(power + kBias) << kMantissaBits;
    float x;
    std::memcpy(&x, &word, sizeof(x));
    return x;
  };
  block.scale = power_of_two(exponent - 22);
  const VF scale = hn::Set(d, power_of_two(22 - exponent));
  const VF limits = hn::Set(d, limit);
  const auto offset = hn::Set(du, kDigitsOffset), flips = hn::Set(du, flip);
  const auto order = hn::SetTableIndices(d, kEvenFirst);
  for (int64_t i = 0; i < count; i += kLanes) {
    VF x = load(i);
    x = hn::IfThenZeroElse(hn::Gt(hn::Abs(x), limits), x);
    if constexpr (kPairs) x = hn::TableLookupLanes(x, order);
    const auto whole = hn::BitCast(du, hn::NearestInt(hn::Mul(x, scale)));
    const auto number = hn::Xor(hn::Add(whole, offset), flips);
    uint8_t* const to = digits + first + i;
    hn::StoreU(hn::TruncateTo(d8, hn::ShiftRight<16>(number)), d8, to);
    hn::StoreU(hn::TruncateTo(d8, hn::ShiftRight<8>(number)), d8, to + stride);
    hn::StoreU(hn::TruncateTo(d8, number), d8, to + 2 * stride);
  }
  return true;
}

// Returns the nearest whole numbers of numbers within 31 bits.
HWY_INLINE hn::Vec<hn::Rebind<int32_t, F32>> NearestSmall(VF x) {
#if HWY_TARGET == HWY_AVX3
  return {_mm512_cvtps_epi32(x.raw)};
#else
  return {_mm256_cvtps_epi32(x.raw)};
#endif
}

// Returns the larger of each lane of a vector and the same lane of its other quarters.
template <class V>
HWY_INLINE auto LargestOfQuarters(V v) {
  const hn::DFromV<V> d;
  if constexpr (hn::MaxLanes(d) == 4) {
    return v;
  } else {
    const hn::Half<decltype(d)> half;
    return LargestOfQuarters(hn::Max(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

// Rounds the blocks of a row, and adds `offset` to each byte. A number of blocks have their factors
// found together: one by one each would wait for its own divisions.
template <bool kPairs>
HWY_INLINE void RoundBlocks(const float* HWY_RESTRICT a, const DigitBlocks& blocks, uint8_t offset,
                            uint8_t* HWY_RESTRICT bytes, DigitBlock* HWY_RESTRICT to) {
  constexpr int64_t kTogether = 16, kCopies = 4;
  const F32 d;
  const hn::Rebind<int32_t, F32> d32;
  const hn::Rebind<uint8_t, F32> d8;
  const hn::FixedTag<int32_t, kCopies> four;
  const VF infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  const VF least = hn::Set(d, ops::kLeastRange), steps = hn::Set(d, 127.0f);
  const VF none = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
  const auto offsets = hn::Set(d32, offset);
  const auto order = hn::SetTableIndices(d, kEvenFirst);
  // Ordered like the magnitudes; NaN is above infinity. Each block has four.
  HWY_ALIGN int32_t most[kTogether * kCopies] = {};
  HWY_ALIGN float scales[kTogether * kCopies], inverses[kTogether * kCopies];
  for (int64_t begin = 0; begin < blocks.count; begin += kTogether) {
    const int64_t end = std::min(begin + kTogether, blocks.count);
    const auto for_block = [&](int64_t b, const auto& use) HWY_ATTR {
      const int64_t first = b * blocks.length;
      const int64_t count = std::min(blocks.length, blocks.k - first);
      for (int64_t i = 0; i < count; i += kLanes) {
        use(i + kLanes <= count ? hn::LoadU(d, a + first + i)
                                : LoadPart(d, a + first + i, count - i),
            first + i);
      }
    };
    for (int64_t b = begin; b < end; ++b) {
      auto largest = hn::Zero(d32);
      for_block(b, [&](VF x, int64_t)
                       HWY_ATTR { largest = hn::Max(largest, hn::BitCast(d32, hn::Abs(x))); });
      hn::Store(LargestOfQuarters(largest), four, most + (b - begin) * kCopies);
    }
    for (int64_t at = 0; at < (end - begin) * kCopies; at += kLanes) {
      auto largest = hn::Load(d32, most + at);
      largest = hn::Max(largest, hn::Shuffle2301(largest));
      largest = hn::Max(largest, hn::Shuffle1032(largest));
      // As ops::BlockScaleOf.
      const VF range = hn::BitCast(d, largest);
      const auto finite = hn::Lt(range, infinity), small = hn::Lt(range, least);
      const VF scale = hn::IfThenZeroElse(small, hn::Div(range, steps));
      const VF inverse = hn::IfThenZeroElse(small, hn::Div(steps, range));
      hn::Store(hn::IfThenElse(finite, scale, none), d, scales + at);
      hn::Store(hn::IfThenElseZero(finite, inverse), d, inverses + at);
    }
    for (int64_t b = begin; b < end; ++b) {
      to[b].scale = scales[(b - begin) * kCopies];
      const VF inverse = hn::Set(d, inverses[(b - begin) * kCopies]);
      // Where a number is not finite all become 0: as integers their lowest bytes are.
      for_block(b, [&](VF x, int64_t at) HWY_ATTR {
        if constexpr (kPairs) x = hn::TableLookupLanes(x, order);
        const auto number = hn::Add(NearestSmall(hn::Mul(x, inverse)), offsets);
        const hn::Rebind<uint32_t, F32> du;
        hn::StoreU(hn::TruncateTo(d8, hn::BitCast(du, number)), d8, bytes + at);
      });
    }
  }
}

// Adds up the digits of a row's blocks; digits are signed once their bits `flip` are changed.
template <int kDigits>
HWY_INLINE void SumDigits(const uint8_t* digits, int64_t stride, const DigitBlocks& blocks,
                          uint8_t flip, DigitBlock* to) {
  for (int64_t b = 0; b < blocks.count; ++b) {
    const int64_t begin = b * blocks.length;
    const int64_t end = std::min(begin + blocks.length, (blocks.k + 7) / 8 * 8);
    int64_t of_integers = 0;
    for (int digit = 0; digit < kDigits; ++digit) {
      int64_t sum = -128 * (end - begin);
      for (int64_t i = begin; i < end; i += 8) {
        const hn::FixedTag<uint8_t, 8> eight;
        const hn::Repartition<uint64_t, decltype(eight)> one;
        const auto bytes =
            hn::Xor(hn::LoadU(eight, digits + digit * stride + i), hn::Set(eight, flip));
        sum += static_cast<int64_t>(hn::GetLane(hn::BitCast(one, hn::SumsOf8(bytes))));
      }
      to[b].less[digit] = static_cast<uint16_t>(-sum);
      of_integers = 256 * of_integers + sum;
    }
    to[b].sum = static_cast<float>(of_integers) * to[b].scale;
  }
}

// Writes the digits of a row of A, kDigits times `stride` bytes, and the facts of its blocks: with
// `sums` all, else their factors. Digits are signed bytes, or with `plus128` those plus 128.
template <int kBits, int kDigits>
void SplitRow(const float* a, const DigitBlocks& blocks, bool plus128, bool sums, uint8_t* digits,
              int64_t stride, DigitBlock* to, DigitOutliers& outliers) {
  outliers.count = 0;
  const uint8_t none = plus128 ? 0x80 : 0;
  for (int digit = 0; digit < kDigits; ++digit) {
    const int64_t end = blocks.k / kLanes * kLanes;
    std::memset(digits + digit * stride + end, none, static_cast<size_t>(stride - end));
  }
  if constexpr (kDigits == 1) {
    RoundBlocks<kBits == 4>(a, blocks, none, digits, to);
  } else {
    for (int64_t b = 0; b < blocks.count; ++b) {
      const int64_t first = b * blocks.length;
      const int64_t count = std::min(blocks.length, blocks.k - first);
      const uint32_t flip = plus128 ? 0 : kDigitsOffset;
      if (SplitBlock<kBits == 4>(a, b, first, count, flip, digits, stride, to[b], outliers))
        continue;
      outliers.count = kAll;
      // The digits are not read then.
      for (int64_t i = b; i < blocks.count; ++i) to[i] = {};
      return;
    }
  }
  if (sums) SumDigits<kDigits>(digits, stride, blocks, plus128 ? 0 : 0x80, to);
}

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // REPRISE_HAS_VNNI

#endif  // include guard
