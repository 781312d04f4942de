// The cells of pages as vectors of floats, or as pairs of bfloat16. Included inside a kernel file
// after hwy/highway.h, once for each Highway target.
#if defined(REPRISE_CPU_PAGED_CELLS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_PAGED_CELLS_INL_H_
#undef REPRISE_CPU_PAGED_CELLS_INL_H_
#else
#define REPRISE_CPU_PAGED_CELLS_INL_H_
#endif

#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "runtime/device/cpu/simd/bf16_pairs-inl.h"
#include "runtime/device/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = HWY_LANES(float);
constexpr F32 kF32 = {};

// Returns a vector of keys or values as floats.
HWY_INLINE VF LoadCells(const float* at) { return hn::LoadU(kF32, at); }
HWY_INLINE VF LoadCells(const uint16_t* at) {  // bfloat16
  const hn::Rebind<uint16_t, F32> halves;
  const hn::RebindToUnsigned<F32> words;
  return hn::BitCast(kF32, hn::ShiftLeft<16>(hn::PromoteTo(words, hn::LoadU(halves, at))));
}
HWY_INLINE VF LoadCells(const int8_t* at) {
  const hn::Rebind<int8_t, F32> bytes;
  const hn::RebindToSigned<F32> words;
  return hn::ConvertTo(kF32, hn::PromoteTo(words, hn::LoadU(bytes, at)));
}
template <class Cell>
constexpr bool kScaled = std::is_same_v<Cell, int8_t>;

// Whether queries, keys, weights and values are rounded to bfloat16 and multiplied in pairs.
enum class Form { kExact, kRounded };

#if HWY_TARGET == HWY_AVX3
constexpr bool kRounds = true;

// Returns the cells of two rows as pairs.
template <class Cell>
HWY_INLINE VF PairCells(const Cell* low, const Cell* high) {
  return PairLanes(LoadCells(low), LoadCells(high));
}
HWY_INLINE VF PairCells(const uint16_t* low, const uint16_t* high) {
  const hn::Rebind<uint16_t, F32> halves;
  const hn::RebindToUnsigned<F32> words;
  const auto lower = hn::PromoteTo(words, hn::LoadU(halves, low));
  const auto upper = hn::PromoteTo(words, hn::LoadU(halves, high));
  return hn::BitCast(kF32, hn::Or(lower, hn::ShiftLeft<16>(upper)));
}

// Rounds `count` numbers of a row to words of pairs.
HWY_INLINE void RoundToPairs(const float* from, int64_t count, float* to) {
  const auto load = [&](int64_t i) HWY_ATTR {
    if (i + kLanes <= count) return hn::LoadU(kF32, from + i);
    return i < count ? LoadPart(kF32, from + i, count - i) : hn::Zero(kF32);
  };
  for (int64_t i = 0; i < count; i += 2 * kLanes) {
    hn::StoreU(RoundPair(load(i), load(i + kLanes)), kF32, to + i / 2);
  }
}
#else
constexpr bool kRounds = false;
#endif

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
