// Rounds floats to bfloat16, and says where a packed panel of them begins (gemm_bf16.h). This is
// included inside a kernel file after hwy/highway.h, once for each Highway target.
#if defined(REPRISE_CPU_BF16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_BF16_INL_H_
#undef REPRISE_CPU_BF16_INL_H_
#else
#define REPRISE_CPU_BF16_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/gemm_bf16.h"
#include "runtime/device/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

using U32 = hn::RebindToUnsigned<F32>;
using VU = hn::Vec<U32>;

constexpr int kBf16Vectors = 2;
constexpr int64_t kBf16Panel = int64_t{kBf16Vectors} * HWY_LANES(float);

// Rows of pairs in a packed panel.
constexpr int64_t PairRows(int64_t k) {
  return (k + kBf16Depth - 1) / kBf16Depth * (kBf16Depth / 2);
}
// Words of a packed panel.
constexpr int64_t PanelWords(int64_t k) { return PairRows(k) * kBf16Panel; }

// Each float as the nearest bfloat16, in the upper half of its word.
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
