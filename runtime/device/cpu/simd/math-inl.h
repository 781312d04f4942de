// Vector math on float lanes, for each Highway target. Included inside a kernel file after
// hwy/highway.h; the functions live in reprise::cpu::HWY_NAMESPACE.
//
// The polynomials are minimax fits of our own (weighted by the error that reaches the result).
// Errors against the exact function, checked by
// tests/runtime/device/cpu/elementwise/elementwise_test.cc over every tier:
//
//   Exp        2 ulp over all floats, gradual underflow included; overflow gives +inf
//   SoftmaxExp 1e-7 * (2 + |x|) relative for x in [lowest, 0]; below `lowest`, -87, exactly 0
//   Tanh       2e-7 relative
//   Sigmoid    2e-7 relative above -87, absolute below
//   Erf        2e-7 absolute, 3e-7 relative
//   Gelu       2e-7 * max(|x|, 1), exact form x * Phi(x)
//   GeluTanh   3e-7 * max(|x|, 1) of 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
//   Log        2e-7 relative, subnormal numbers included
//   Softplus   3e-7 relative
//   Mish       4e-7 relative
//   Elu        3e-7 relative of e^x - 1
//
// NaN in, NaN out.
#if defined(REPRISE_CPU_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_MATH_INL_H_
#undef REPRISE_CPU_MATH_INL_H_
#else
#define REPRISE_CPU_MATH_INL_H_
#endif

#include <cmath>
#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "runtime/ops/elementwise/unary.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using VF = hn::Vec<F32>;

// Returns the first `count` lanes (1 <= count <= lanes) from memory, zero in the others. Touches
// no byte after them.
HWY_INLINE VF LoadPart(F32 d, const float* p, int64_t count) {
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, p);
}

HWY_INLINE void StorePart(VF v, F32 d, float* p, int64_t count) {
  hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(count)), d, p);
}

// Makes the compiler keep `pointer` in a register of its own, rather than compute it from another
// one at each use.
template <class T>
HWY_INLINE const T* Kept(const T* pointer) {
  asm("" : "+r"(pointer));
  return pointer;
}

// sum += a * b, in the register that `sum` has: the compiler's own choice of form and order copies
// accumulators around, which the products wait for.
HWY_INLINE void Accumulate(VF& sum, VF a, VF b) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  auto register_of_sum = sum.raw;
  asm("vfmadd231ps %2, %1, %0" : "+v"(register_of_sum) : "v"(a.raw), "v"(b.raw));
  sum.raw = register_of_sum;
#else
  sum = hn::MulAdd(a, b, sum);
#endif
}

// Bounds that let NaN through on every target (x86 returns the second operand where one is NaN).
HWY_INLINE VF AtLeast(F32 d, VF x, float bound) {
#if HWY_TARGET == HWY_SCALAR
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, bound)), hn::Set(d, bound), x);
#else
  return hn::Max(hn::Set(d, bound), x);
#endif
}

HWY_INLINE VF AtMost(F32 d, VF x, float bound) {
#if HWY_TARGET == HWY_SCALAR
  return hn::IfThenElse(hn::Gt(x, hn::Set(d, bound)), hn::Set(d, bound), x);
#else
  return hn::Min(hn::Set(d, bound), x);
#endif
}

// c0 + x * (c1 + x * (c2 + ...)).
template <class... C>
HWY_INLINE VF Polynomial(F32 d, VF x, float c0, C... rest) {
  if constexpr (sizeof...(rest) == 0) {
    return hn::Set(d, c0);
  } else {
    return hn::MulAdd(Polynomial(d, x, rest...), x, hn::Set(d, c0));
  }
}

// v * 2^n for whole numbers n in [-126, 127].
HWY_INLINE VF ScaleNormal(F32 d, VF v, VF n) {
#if HWY_TARGET == HWY_AVX3
  return VF{_mm512_scalef_ps(v.raw, n.raw)};
#else
  const hn::RebindToSigned<F32> di;
  const auto bits = hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(di, n), hn::Set(di, 127)));
  return hn::Mul(v, hn::BitCast(d, bits));
#endif
}

// v * 2^n for whole numbers n in [-252, 254]; the result may be subnormal or infinite.
HWY_INLINE VF ScaleAny(F32 d, VF v, VF n) {
#if HWY_TARGET == HWY_AVX3
  return VF{_mm512_scalef_ps(v.raw, n.raw)};
#else
  const VF half = hn::Floor(hn::Mul(n, hn::Set(d, 0.5f)));
  return ScaleNormal(d, ScaleNormal(d, v, half), hn::Sub(n, half));
#endif
}

// e^r - 1 - r for |r| <= ln(2) / 2, divided by r^2.
HWY_INLINE VF ExpTail(F32 d, VF r) {
  return Polynomial(d, r, 4.999999404e-01f, 1.666651964e-01f, 4.166839272e-02f, 8.368780836e-03f,
                    1.381446724e-03f);
}

// x = n * ln(2) + r, with ln(2) in two parts.
struct ExpParts {
  VF n;
  VF r;
};
HWY_INLINE ExpParts SplitExp(F32 d, VF x) {
  const VF n = hn::Round(hn::Mul(x, hn::Set(d, 1.44269504f)));
  VF r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  return {n, r};
}

HWY_INLINE VF Exp(F32 d, VF x) {
  const VF clamped = AtMost(d, AtLeast(d, x, -104.0f), 89.0f);
  const auto [n, r] = SplitExp(d, clamped);
  const VF p = hn::Add(hn::MulAdd(hn::Mul(r, r), ExpTail(d, r), r), hn::Set(d, 1.0f));
  return ScaleAny(d, p, n);
}

// exp for softmax: x <= 0 is a distance from the row's maximum, so an error that grows with |x|
// belongs to a weight that shrinks much faster. It is 0 below `lowest`, which is at least -87.
HWY_INLINE VF SoftmaxExp(F32 d, VF x, float lowest = -87.0f) {
  const VF t = hn::Mul(x, hn::Set(d, 1.44269504f));
  const VF n = hn::Round(t);
  const VF p = Polynomial(d, hn::Sub(t, n), 1.000000119e+00f, 6.931469440e-01f, 2.402211726e-01f,
                          5.550714582e-02f, 9.675655514e-03f, 1.327635720e-03f);
#if HWY_TARGET == HWY_AVX3
  // Lanes that are to be 0 are not computed: a subnormal result would stall the core.
  const __mmask16 kept = _mm512_cmp_ps_mask(x.raw, _mm512_set1_ps(lowest), _CMP_NLT_UQ);
  return VF{_mm512_maskz_scalef_ps(kept, p.raw, n.raw)};
#else
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, lowest)), ScaleNormal(d, p, n));
#endif
}

// 2^-p for p >= 0; 0 from p = 126 on.
HWY_INLINE VF Exp2Negative(F32 d, VF p) {
  const VF x = hn::Neg(AtMost(d, p, 126.0f));
  const VF n = hn::Round(x);
  const VF f = hn::Sub(x, n);
  const VF poly = Polynomial(d, f, 1.0f, 6.931471825e-01f, 2.402264774e-01f, 5.550331995e-02f,
                             9.618438780e-03f, 1.339900307e-03f, 1.535325719e-04f);
  return hn::IfThenZeroElse(hn::Ge(p, hn::Set(d, 126.0f)), ScaleNormal(d, poly, n));
}

// With t = e^(-2|x|) - 1, which is computed without cancellation: tanh|x| = -t / (t + 2).
HWY_INLINE VF Tanh(F32 d, VF x) {
  const VF y = hn::Mul(hn::Set(d, -2.0f), AtMost(d, hn::Abs(x), 10.0f));
  const auto [n, r] = SplitExp(d, y);
  const VF p = hn::MulAdd(hn::Mul(r, r), ExpTail(d, r), r);
  const VF one = hn::Set(d, 1.0f);
  const VF scale = ScaleNormal(d, one, n);
  const VF t = hn::MulAdd(scale, p, hn::Sub(scale, one));
  const VF magnitude = hn::Div(hn::Neg(t), hn::Add(t, hn::Set(d, 2.0f)));
  return hn::CopySignToAbs(magnitude, x);
}

HWY_INLINE VF Sigmoid(F32 d, VF x) {
  const VF one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, Exp(d, hn::Neg(x))));
}

HWY_INLINE VF Erf(F32 d, VF x) {
  const VF t = AtMost(d, hn::Abs(x), 4.1f);
  const VF s = hn::Mul(t, t);
  const VF small = hn::MulAdd(
      Polynomial(d, s, 1.283791661e-01f, -3.761263192e-01f, 1.128366366e-01f, -2.685770579e-02f,
                 5.196952727e-03f, -8.097709506e-04f, 8.185114712e-05f),
      t, t);
  const VF tail = Exp2Negative(
      d, Polynomial(d, t, 2.560726716e-04f, 1.626998663e+00f, 9.190829396e-01f, 1.500941664e-01f,
                    -3.213903680e-02f, 4.408307839e-03f, -2.844728879e-04f));
  const VF large = hn::Sub(hn::Set(d, 1.0f), tail);
  const VF magnitude = hn::IfThenElse(hn::Lt(t, hn::Set(d, 0.93f)), small, large);
  return hn::CopySignToAbs(magnitude, x);
}

// Returns the largest number, or the largest one whose double is a number.
template <bool kDoubles>
constexpr float LargestOf() {
  return std::numeric_limits<float>::max() / (kDoubles ? 2 : 1);
}

// x * Phi(x) = max(x, 0) - t * Q(t) with t = |x| and Q the upper tail of the normal distribution;
// -log2(Q) is smooth, so one polynomial and one exponential serve, and negative x lose no digits.
// `kDoubles`: computed as 2 x * Phi(x) / 2, so that the larger half of all numbers is infinite.
template <bool kDoubles = false>
HWY_INLINE VF Gelu(F32 d, VF x) {
  const VF t = hn::Abs(x);
  // After 14 the tail is 0 in float; the bound keeps infinity out of the polynomial.
  const VF bounded = AtMost(d, t, 14.0f);
  const VF tail = Exp2Negative(
      d, Polynomial(d, bounded, 1.0f, 1.151105404e+00f, 4.592110813e-01f, 5.246943235e-02f,
                    -6.988368928e-03f, 3.664695396e-05f, 2.585441689e-04f, -6.844868767e-05f,
                    9.089704690e-06f, -6.208184686e-07f, 1.686146511e-08f));
  // Infinity is itself. (For -infinity the product is NaN, in line with the definition.)
  return hn::IfThenElse(hn::Gt(x, hn::Set(d, LargestOf<kDoubles>())), hn::Set(d, INFINITY),
                        hn::NegMulAdd(t, tail, AtLeast(d, x, 0.0f)));
}

// 0.5 x (1 + tanh(u)) = x * sigmoid(2u). `kDoubles`: see Gelu.
template <bool kDoubles = false>
HWY_INLINE VF GeluTanh(F32 d, VF x) {
  const VF square = hn::Mul(x, x);
  const VF inner = hn::MulAdd(square, hn::Set(d, 0.0713548163f), hn::Set(d, 1.59576912f));
  const VF y = hn::Mul(x, Sigmoid(d, hn::Mul(x, inner)));
  if constexpr (!kDoubles) return y;
  return hn::IfThenElse(hn::Gt(x, hn::Set(d, LargestOf<true>())), hn::Set(d, INFINITY), y);
}

HWY_INLINE VF Silu(F32 d, VF x) { return hn::Mul(x, Sigmoid(d, x)); }

HWY_INLINE VF QuickGelu(F32 d, VF x) {
  return hn::Mul(x, Sigmoid(d, hn::Mul(x, hn::Set(d, ops::kQuickGeluAlpha))));
}

HWY_INLINE VF Relu(F32 d, VF x) { return AtLeast(d, x, 0.0f); }

HWY_INLINE VF Sign(F32 d, VF x) {
  const VF zero = hn::Zero(d), one = hn::Set(d, 1.0f);
  const VF sign =
      hn::Sub(hn::IfThenElseZero(hn::Gt(x, zero), one), hn::IfThenElseZero(hn::Lt(x, zero), one));
  return hn::IfThenElse(hn::Eq(x, x), sign, x);
}

HWY_INLINE VF LeakyRelu(F32 d, VF x, float slope) {
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, hn::Set(d, slope)), x);
}

HWY_INLINE VF HardSigmoid(F32 d, VF x, float slope, float shift) {
  const VF y = hn::MulAdd(x, hn::Set(d, slope), hn::Set(d, shift));
  return AtMost(d, AtLeast(d, y, 0.0f), 1.0f);
}

HWY_INLINE VF HardSwish(F32 d, VF x) { return hn::Mul(x, HardSigmoid(d, x, 1.0f / 6, 0.5f)); }

// e^x - 1 where x <= 0, without cancellation; anything where it is not.
HWY_INLINE VF Expm1Negative(F32 d, VF x) {
  const auto [n, r] = SplitExp(d, AtMost(d, AtLeast(d, x, -87.0f), 0.0f));
  const VF p = hn::MulAdd(hn::Mul(r, r), ExpTail(d, r), r);
  const VF one = hn::Set(d, 1.0f);
  const VF scale = ScaleNormal(d, one, n);
  return hn::MulAdd(scale, p, hn::Sub(scale, one));
}

HWY_INLINE VF Elu(F32 d, VF x, float alpha) {
  const VF below = hn::Mul(hn::Set(d, alpha), Expm1Negative(d, x));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), below, x);
}

// Returns the logarithm of normal numbers: x = 2^e (1 + f) with 1 + f around 1.
HWY_INLINE VF LogNormal(F32 d, VF x) {
  const hn::RebindToSigned<F32> di;
  const auto root_half = hn::Set(di, 0x3f3504f3);
  const auto bits = hn::Sub(hn::BitCast(di, x), root_half);
  const VF e = hn::ConvertTo(d, hn::ShiftRight<23>(bits));
  const auto mantissa = hn::Add(hn::And(bits, hn::Set(di, 0x7fffff)), root_half);
  const VF f = hn::Sub(hn::BitCast(d, mantissa), hn::Set(d, 1.0f));
  const VF square = hn::Mul(f, f);
  VF y = Polynomial(d, f, 3.333331347e-01f, -2.500000894e-01f, 2.000211924e-01f, -1.666799635e-01f,
                    1.421955079e-01f, -1.240559146e-01f, 1.188817471e-01f, -1.167564094e-01f,
                    6.746601313e-02f);
  // ln(2) in the two parts that SplitExp has.
  y = hn::MulAdd(e, hn::Set(d, -2.12194440e-4f), hn::Mul(hn::Mul(square, f), y));
  y = hn::Add(hn::NegMulAdd(square, hn::Set(d, 0.5f), y), f);
  return hn::MulAdd(e, hn::Set(d, 0.693359375f), y);
}

HWY_INLINE VF Log(F32 d, VF x) {
  const auto tiny = hn::Lt(x, hn::Set(d, 1.17549435e-38f));
  const VF normal = hn::IfThenElse(tiny, hn::Mul(x, hn::Set(d, 8388608.0f)), x);
  VF y = LogNormal(d, normal);
  y = hn::IfThenElse(tiny, hn::Sub(y, hn::Set(d, 15.9423851528787f)), y);
  const VF infinity = hn::Set(d, INFINITY), zero = hn::Zero(d);
  // Infinity and NaN are themselves.
  y = hn::IfThenElse(hn::Lt(x, infinity), y, x);
  y = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), y);
  return hn::IfThenElse(hn::Lt(x, zero), hn::Sub(infinity, infinity), y);
}

// log(1 + u) for u in [0, 1], with the digits of a small u.
HWY_INLINE VF Log1p(F32 d, VF u) {
  const VF one = hn::Set(d, 1.0f);
  const VF sum = hn::Add(one, u);
  // The part of u that the sum has lost.
  const VF lost = hn::Sub(u, hn::Sub(sum, one));
  return hn::Add(LogNormal(d, sum), hn::Div(lost, sum));
}

// log(1 + e^x).
HWY_INLINE VF Softplus(F32 d, VF x) {
  return hn::Add(AtLeast(d, x, 0.0f), Log1p(d, Exp(d, hn::Neg(hn::Abs(x)))));
}

// x tanh(softplus(x)): with e = e^x the tangent is e (e + 2) / (e (e + 2) + 2).
HWY_INLINE VF Mish(F32 d, VF x) {
  const VF two = hn::Set(d, 2.0f);
  // Beyond 20 the quotient is 1.
  const VF e = Exp(d, AtMost(d, x, 20.0f));
  const VF n = hn::Mul(e, hn::Add(e, two));
  return hn::Mul(x, hn::Div(n, hn::Add(n, two)));
}

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
