// Requantizes floats that are known to be a moderate number of steps to bytes: several vectors at a
// time, without a test for special values. This is included inside a kernel file after
// hwy/highway.h, once for each Highway target.
#if defined(REPRISE_CPU_REQUANTIZE_STEPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_REQUANTIZE_STEPS_INL_H_
#undef REPRISE_CPU_REQUANTIZE_STEPS_INL_H_
#else
#define REPRISE_CPU_REQUANTIZE_STEPS_INL_H_
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "runtime/device/cpu/int8/requantize_bounds.h"
#include "runtime/device/cpu/simd/copy_bytes.h"
#include "runtime/device/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// Whether there is a QuickSteps: not one lane at a time.
constexpr bool kHasQuickSteps = HWY_TARGET != HWY_SCALAR;

#if HWY_TARGET != HWY_SCALAR

// Returns the nearest whole numbers, halves to even; then two at a time within the bounds of a
// narrower type, 16 bytes of each in turn.
HWY_INLINE __m128i NearestWhole(__m128 x) { return _mm_cvtps_epi32(x); }
HWY_INLINE __m256i NearestWhole(__m256 x) { return _mm256_cvtps_epi32(x); }
HWY_INLINE __m128i PackWords(__m128i a, __m128i b) { return _mm_packs_epi32(a, b); }
HWY_INLINE __m256i PackWords(__m256i a, __m256i b) { return _mm256_packs_epi32(a, b); }
HWY_INLINE __m128i AddHalves(__m128i a, __m128i b) { return _mm_adds_epi16(a, b); }
HWY_INLINE __m256i AddHalves(__m256i a, __m256i b) { return _mm256_adds_epi16(a, b); }
HWY_INLINE __m128i PackHalves(__m128i a, __m128i b) { return _mm_packus_epi16(a, b); }
HWY_INLINE __m256i PackHalves(__m256i a, __m256i b) { return _mm256_packus_epi16(a, b); }
#if HWY_TARGET == HWY_AVX3
HWY_INLINE __m512i NearestWhole(__m512 x) { return _mm512_cvtps_epi32(x); }
HWY_INLINE __m512i PackWords(__m512i a, __m512i b) { return _mm512_packs_epi32(a, b); }
HWY_INLINE __m512i AddHalves(__m512i a, __m512i b) { return _mm512_adds_epi16(a, b); }
HWY_INLINE __m512i PackHalves(__m512i a, __m512i b) { return _mm512_packus_epi16(a, b); }
#endif

// Vectors of floats of the tag DF, and of as many bytes as they have.
template <class DF>
class QuickSteps {
 public:
  using VFloat = hn::Vec<DF>;
  using DI = hn::RebindToSigned<DF>;
  using VInt = hn::Vec<DI>;
  using D8 = hn::Repartition<uint8_t, DF>;
  using V8 = hn::Vec<D8>;
  static constexpr int kBlocks = static_cast<int>(hn::MaxLanes(DF())) / 4;  // blocks of 16 bytes

  // The limit of `bounds` must not be 0.
  HWY_INLINE explicit QuickSteps(const StepBounds& bounds)
      : scale_(hn::Set(DF(), bounds.scale)),
        inverse_(hn::Set(DF(), bounds.inverse)),
        raise_(hn::Set(hn::Repartition<int16_t, DF>(), bounds.raise)),
        low_(hn::Set(D8(), bounds.low)),
        high_(hn::Set(D8(), bounds.high)),
        flip_(hn::Set(D8(), bounds.flip)) {}

  // Returns the steps of floats below the limit, before the zero point and the bounds of a byte. A
  // quotient by the inverse is corrected by its remainder, after P. Markstein (IBM Journal of R&D
  // 34, 1990), from a start beyond his proof: tests, not a proof, show that bytes equal the ones of
  // a division.
  HWY_INLINE VInt Steps(VFloat x) const {
    const VFloat quotient = hn::Mul(x, inverse_);
    const VFloat rest = hn::NegMulAdd(quotient, scale_, x);
    return VInt{NearestWhole(hn::MulAdd(rest, inverse_, quotient).raw)};
  }

  // Returns the bytes of four vectors of steps: the first blocks of each, then the second ones.
  HWY_INLINE V8 Bytes(VInt a, VInt b, VInt c, VInt d) const {
    const auto first = AddHalves(PackWords(a.raw, b.raw), raise_.raw);
    const auto second = AddHalves(PackWords(c.raw, d.raw), raise_.raw);
    const V8 bytes = V8{PackHalves(first, second)};
    return hn::Xor(flip_, hn::Min(hn::Max(bytes, low_), high_));
  }

  // Stores `kVecs` vectors of steps one after another, `live` bytes of them.
  template <int kVecs>
  HWY_INLINE void Store(const VInt (&steps)[kVecs], int64_t live, uint8_t* y) const {
    const V8 blocks = Bytes(steps[0], steps[std::min(1, kVecs - 1)], steps[std::min(2, kVecs - 1)],
                            steps[kVecs - 1]);
    const D8 d;
    const hn::Repartition<int32_t, DF> d32;
    HWY_ALIGN static constexpr int32_t kFrom[] = {0, 4, 8,  12, 1, 5, 9,  13,
                                                  2, 6, 10, 14, 3, 7, 11, 15,  // 4 blocks
                                                  0, 4, 1,  5,  2, 6, 3,  7,   // 2 blocks
                                                  0, 1, 2,  3};
    const auto order = hn::SetTableIndices(d32, kFrom + (kBlocks == 4   ? 0
                                                         : kBlocks == 2 ? 16
                                                                        : 24));
    const V8 bytes = hn::BitCast(d, hn::TableLookupLanes(hn::BitCast(d32, blocks), order));
    constexpr int64_t kVecBytes = int64_t{kBlocks} * 4;
    if (live < kVecs * kVecBytes) {
      HWY_ALIGN uint8_t whole[4 * kVecBytes];
      hn::Store(bytes, d, whole);
      CopyBytes(whole, live, y);
      return;
    }
    const hn::Half<D8> half;
    const hn::Half<hn::Half<D8>> quarter;
    if constexpr (kVecs == 4) hn::StoreU(bytes, d, y);
    if constexpr (kVecs == 3) {
      hn::StoreU(hn::LowerHalf(half, bytes), half, y);
      hn::StoreU(hn::LowerHalf(quarter, hn::UpperHalf(half, bytes)), quarter, y + 2 * kVecBytes);
    }
    if constexpr (kVecs == 2) hn::StoreU(hn::LowerHalf(half, bytes), half, y);
    if constexpr (kVecs == 1) {
      hn::StoreU(hn::LowerHalf(quarter, hn::LowerHalf(half, bytes)), quarter, y);
    }
  }

 private:
  VFloat scale_, inverse_;
  hn::Vec<hn::Repartition<int16_t, DF>> raise_;
  V8 low_, high_, flip_;
};

#endif

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
