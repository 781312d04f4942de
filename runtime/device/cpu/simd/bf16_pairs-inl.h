// Rounds floats to bfloat16, and multiplies pairs of these. This is included inside a kernel file
// after hwy/highway.h, once for each Highway target.
#if defined(REPRISE_CPU_BF16_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_BF16_PAIRS_INL_H_
#undef REPRISE_CPU_BF16_PAIRS_INL_H_
#else
#define REPRISE_CPU_BF16_PAIRS_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "runtime/device/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

using U32 = hn::RebindToUnsigned<F32>;
using VU = hn::Vec<U32>;

// Rounds each float to the nearest bfloat16, in the upper half of its word.
HWY_INLINE VU RoundToBf16(VF x) {
  const U32 du;
  const VU bits = hn::BitCast(du, x);
  const VU odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
  const VU rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFFu)));
  const VU quiet = hn::Or(bits, hn::Set(du, 0x00400000u));  // NaN stays NaN
  return hn::And(hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(x)), quiet, rounded),
                 hn::Set(du, 0xFFFF0000u));
}

#if HWY_TARGET == HWY_AVX3
// Rounds two vectors to one vector of bfloat16, which has the elements of `low` first. The CPU must
// have AVX512_BF16.
HWY_INLINE VF RoundPair(VF low, VF high) {
  VF both;
  asm("vcvtne2ps2bf16 %2, %1, %0" : "=v"(both.raw) : "v"(high.raw), "v"(low.raw));
  return both;
}

// Rounds lane i of both to word i, with `low` in its lower half.
HWY_INLINE VF PairLanes(VF low, VF high) {
  const F32 d;
  const U32 du;
  // Halves i and 16 + i.
  const VU places =
      hn::Add(hn::Mul(hn::Iota(du, 0), hn::Set(du, 0x00010001u)), hn::Set(du, 0x00100000u));
  const VU both = hn::BitCast(du, RoundPair(low, high));
  return hn::BitCast(d, VU{_mm512_permutexvar_epi16(places.raw, both.raw)});
}

// sum += products of the upper halves, then of the lower ones, in the order of the widened form.
HWY_INLINE void AccumulatePairs(VF& sum, VF a, VF b) {
  auto register_of_sum = sum.raw;
  asm("vdpbf16ps %2, %1, %0" : "+v"(register_of_sum) : "v"(a.raw), "v"(b.raw));
  sum.raw = register_of_sum;
}
#endif

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
