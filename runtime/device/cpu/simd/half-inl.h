// float16 and bfloat16 as floats and floats as float16, for each Highway target: a vector at a time
// where it has instructions for that. Included inside a kernel file after hwy/highway.h; the
// functions live in reprise::cpu::HWY_NAMESPACE.
#if defined(REPRISE_CPU_HALF_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_HALF_INL_H_
#undef REPRISE_CPU_HALF_INL_H_
#else
#define REPRISE_CPU_HALF_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "runtime/device/cpu/simd/math-inl.h"
#include "runtime/graph/tensor.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {

using U16 = hn::Rebind<uint16_t, F32>;
using VU16 = hn::Vec<U16>;
using F16 = hn::Rebind<hwy::float16_t, F32>;

struct Float16Bits {
  static HWY_INLINE VF Widen(F32 d, VU16 x) { return hn::PromoteTo(d, hn::BitCast(F16(), x)); }
  static float Widen(uint16_t x) { return HalfToFloat(x); }
};

struct BFloat16Bits {
  static HWY_INLINE VF Widen(F32 d, VU16 x) {
    const hn::RebindToUnsigned<F32> words;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(words, x)));
  }
  static float Widen(uint16_t x) { return BFloat16ToFloat(x); }
};

// The baseline's emulated conversions truncate.
constexpr bool kConvertsHalves = HWY_TARGET != HWY_SCALAR;
constexpr int64_t kFloatLanes = HWY_LANES(float);

// f(the floats from x on, where they belong), a vector or one at a time.
template <class Half, class Vectors, class One>
HWY_INLINE void ForEachFloatOf(const void* x, float* y, int64_t count, Vectors vectors, One one) {
  const auto* from = static_cast<const std::byte*>(x);
  int64_t i = 0;
  if constexpr (kConvertsHalves) {
    for (; i + kFloatLanes <= count; i += kFloatLanes) {
      // They may be misaligned for 16-bit numbers.
      HWY_ALIGN uint16_t lanes[kFloatLanes];
      std::memcpy(lanes, from + 2 * i, sizeof(lanes));
      vectors(Half::Widen(F32(), hn::Load(U16(), lanes)), y + i);
    }
  }
  for (; i < count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, from + 2 * i, sizeof(bits));
    one(Half::Widen(bits), y + i);
  }
}

// y = x; exact. x may begin at any address.
template <class Half>
HWY_INLINE void WidenHalves(const void* x, float* y, int64_t count) {
  ForEachFloatOf<Half>(
      x, y, count, [](VF value, float* to) HWY_ATTR { hn::StoreU(value, F32(), to); },
      [](float value, float* to) { *to = value; });
}

// y = x, to the nearest, ties to even.
HWY_INLINE void NarrowToFloat16(const float* x, uint16_t* y, int64_t count) {
  int64_t i = 0;
  if constexpr (kConvertsHalves) {
    for (; i + kFloatLanes <= count; i += kFloatLanes) {
      hn::StoreU(hn::BitCast(U16(), hn::DemoteTo(F16(), hn::LoadU(F32(), x + i))), U16(), y + i);
    }
  }
  for (; i < count; ++i) y[i] = FloatToHalf(x[i]);
}

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REPRISE_CPU_HALF_INL_H_
