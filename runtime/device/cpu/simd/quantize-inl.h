// Floats as steps of integers, halves to even. Included inside a kernel file after hwy/highway.h,
// once for each Highway target.
#if defined(REPRISE_CPU_QUANTIZE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_QUANTIZE_INL_H_
#undef REPRISE_CPU_QUANTIZE_INL_H_
#else
#define REPRISE_CPU_QUANTIZE_INL_H_
#endif

#include <cmath>
#include <limits>

#include "hwy/highway.h"
#include "runtime/device/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// Rounds to whole steps, without the zero point, between `low` and `high`, which are the range of a
// dtype less the zero point.
HWY_INLINE VF StepsWithin(F32 d, VF x, VF scale, VF zero, VF low, VF high) {
  VF steps = hn::Round(hn::Div(x, scale));
  steps = hn::IfThenElse(hn::IsNaN(steps), low, steps);
  return hn::Min(hn::Max(steps, low), high);
}

// Returns the same of a dtype.
template <class T>
HWY_INLINE VF Steps(F32 d, VF x, VF scale, VF zero) {
  const VF low = hn::Sub(hn::Set(d, static_cast<float>(std::numeric_limits<T>::min())), zero);
  const VF high = hn::Sub(hn::Set(d, static_cast<float>(std::numeric_limits<T>::max())), zero);
  return StepsWithin(d, x, scale, zero, low, high);
}

// To bytes, with one scale and zero point.
class ByteSteps {
 public:
  ByteSteps(float scale, int zero, bool is_signed)
      : scale_(scale),
        // If the inverse is not a normal number, products with it are not reliable.
        inverse_(std::isnormal(1 / scale) && std::isnormal(scale)
                     ? 1 / scale
                     : std::numeric_limits<float>::quiet_NaN()),
        zero_(static_cast<float>(zero)),
        low_(static_cast<float>((is_signed ? -128 : 0) - zero)),
        high_(static_cast<float>((is_signed ? 127 : 255) - zero)),
        raise_(zero + (is_signed ? 128 : 0)),
        flip_(is_signed ? 0x80 : 0) {}

  // Quantizes each lane of `x` to one byte.
  HWY_INLINE void Store(VF x, uint8_t* y) const {
    const F32 d;
    const hn::RebindToSigned<F32> d32;
    const hn::Rebind<uint8_t, F32> d8;
    const VF low = hn::Set(d, low_), high = hn::Set(d, high_);
#if HWY_TARGET == HWY_SCALAR
    const VF steps = StepsWithin(d, x, hn::Set(d, scale_), hn::Set(d, zero_), low, high);
#else
    // Multiplying is much faster than dividing, and gives the quotient to within 1e-4: unless it is
    // that near to a half, the number of steps is the same. (These bounds let NaN through.)
    const VF product = AtMost(d, AtLeast(d, hn::Mul(x, hn::Set(d, inverse_)), low_), high_);
    VF steps = hn::Round(product);
    const VF rest = hn::Abs(hn::Sub(product, steps));
    if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Lt(rest, hn::Set(d, 0.4999f))))) {
      steps = StepsWithin(d, x, hn::Set(d, scale_), hn::Set(d, zero_), low, high);
    }
#endif
    const auto raised = hn::Add(hn::ConvertTo(d32, steps), hn::Set(d32, raise_));
    const auto flips = hn::Set(d8, flip_);
#if HWY_TARGET == HWY_AVX3
    // Whole numbers that a byte holds need none of the care that Highway takes of others.
    const __m128i bytes = _mm512_cvtepi32_epi8(raised.raw);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y), _mm_xor_si128(bytes, flips.raw));
#else
    hn::StoreU(hn::Xor(hn::DemoteTo(d8, raised), flips), d8, y);
#endif
  }

 private:
  float scale_, inverse_, zero_;
  float low_, high_;  // steps
  int32_t raise_;     // makes steps numbers from 0 to 255,
  uint8_t flip_;      // which are signed bytes with the highest bit flipped
};

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
