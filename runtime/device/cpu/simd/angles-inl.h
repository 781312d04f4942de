// Sines, tangents and their inverses on float lanes, for each Highway target. Included inside a
// kernel file after hwy/highway.h, like math-inl.h, whose polynomials were found the same way. The
// errors, which are checked like the ones there, are:
//
//   Sin, Cos   1e-7 absolute, 3e-7 relative up to 1e8; beyond, those of the C library
//   Tan        4e-7 relative up to 1e8
//   Asin, Atan 3e-7 relative
//   Acos       3e-7 relative
//
// NaN in, NaN out; of infinite angles and of sines beyond 1 too.
#if defined(REPRISE_CPU_ANGLES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_ANGLES_INL_H_
#undef REPRISE_CPU_ANGLES_INL_H_
#else
#define REPRISE_CPU_ANGLES_INL_H_
#endif

#include <cmath>

#include "hwy/highway.h"
#include "runtime/device/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {

using VI = hn::Vec<hn::RebindToSigned<F32>>;

// Applies f to each lane, with functions of the C library.
template <class F>
HWY_INLINE VF ByLane(F32 d, VF x, F f) {
  HWY_ALIGN float lanes[HWY_LANES(float)];
  hn::Store(x, d, lanes);
  for (float& lane : lanes) lane = f(lane);
  return hn::Load(d, lanes);
}

// x = quarters * pi / 2 + r with |r| <= pi / 4.
struct Angle {
  VI quarters;
  VF r;
};

// The limit on |x|: up to it a double has the digits for r.
constexpr float kMostAngle = 1e8f;
#if HWY_TARGET != HWY_SCALAR
template <class Half>
HWY_INLINE auto SplitHalf(Half half, hn::Vec<Half> x, hn::Vec<hn::RebindToSigned<Half>>& quarters) {
  const hn::Rebind<double, Half> d;
  const auto wide = hn::PromoteTo(d, x);
  const auto n = hn::Round(hn::Mul(wide, hn::Set(d, 0.63661977236758134308)));
  auto r = hn::NegMulAdd(n, hn::Set(d, 1.57079632679489655800), wide);
  r = hn::NegMulAdd(n, hn::Set(d, 6.12323399573676603587e-17), r);
  quarters = hn::DemoteTo(hn::RebindToSigned<Half>(), n);
  return hn::DemoteTo(half, r);
}

HWY_INLINE Angle SplitAngle(F32 d, VF x) {
  const hn::Half<F32> half;
  hn::Vec<hn::RebindToSigned<hn::Half<F32>>> low_quarters, high_quarters;
  const auto low = SplitHalf(half, hn::LowerHalf(half, x), low_quarters);
  const auto high = SplitHalf(half, hn::UpperHalf(half, x), high_quarters);
  return {hn::Combine(hn::RebindToSigned<F32>(), high_quarters, low_quarters),
          hn::Combine(d, high, low)};
}

HWY_INLINE VF SinOfRest(F32 d, VF r) {
  const VF s = hn::Mul(r, r);
  return hn::MulAdd(
      hn::Mul(r, s),
      Polynomial(d, s, -1.666666716e-01f, 8.333329111e-03f, -1.983933471e-04f, 2.718311634e-06f),
      r);
}

HWY_INLINE VF CosOfRest(F32 d, VF r) {
  const VF s = hn::Mul(r, r);
  const VF y = hn::NegMulAdd(s, hn::Set(d, 0.5f), hn::Set(d, 1.0f));
  return hn::MulAdd(hn::Mul(s, s),
                    Polynomial(d, s, 4.166664556e-02f, -1.388731645e-03f, 2.443315498e-05f), y);
}

// Returns the sine of r advanced by `quarters` quarters of a turn.
HWY_INLINE VF SinOf(F32 d, const Angle& angle) {
  const hn::RebindToSigned<F32> di;
  const auto odd = hn::RebindMask(d, hn::Ne(hn::And(angle.quarters, hn::Set(di, 1)), hn::Zero(di)));
  const VF y = hn::IfThenElse(odd, CosOfRest(d, angle.r), SinOfRest(d, angle.r));
  const auto sign = hn::ShiftLeft<30>(hn::And(angle.quarters, hn::Set(di, 2)));
  return hn::Xor(y, hn::BitCast(d, sign));
}

HWY_INLINE VF TanOf(F32 d, const Angle& angle) {
  const hn::RebindToSigned<F32> di;
  const VF sine = SinOfRest(d, angle.r), cosine = CosOfRest(d, angle.r);
  const auto odd = hn::RebindMask(d, hn::Ne(hn::And(angle.quarters, hn::Set(di, 1)), hn::Zero(di)));
  return hn::Div(hn::IfThenElse(odd, hn::Neg(cosine), sine), hn::IfThenElse(odd, sine, cosine));
}
#endif

// Returns `of_angle` of each lane, and `f`, a function of the C library, of lanes beyond
// kMostAngle or NaN: a lane's result does not depend on its neighbours.
template <class OfAngle, class F>
HWY_INLINE VF ByAngle(F32 d, VF x, OfAngle of_angle, F f) {
#if HWY_TARGET != HWY_SCALAR
  const auto small = hn::Le(hn::Abs(x), hn::Set(d, kMostAngle));
  if (HWY_LIKELY(hn::AllTrue(d, small))) return of_angle(SplitAngle(d, x));
  const VF of_small = of_angle(SplitAngle(d, hn::IfThenElseZero(small, x)));
  return hn::IfThenElse(small, of_small, ByLane(d, x, f));
#else
  return ByLane(d, x, f);
#endif
}

HWY_INLINE VF Sin(F32 d, VF x) {
  return ByAngle(
      d, x, [&](const auto& angle) HWY_ATTR { return SinOf(d, angle); },
      [](float v) { return std::sin(v); });
}

HWY_INLINE VF Cos(F32 d, VF x) {
  return ByAngle(
      d, x,
      [&](auto angle) HWY_ATTR {
        angle.quarters = hn::Add(angle.quarters, hn::Set(hn::RebindToSigned<F32>(), 1));
        return SinOf(d, angle);
      },
      [](float v) { return std::cos(v); });
}

HWY_INLINE VF Tan(F32 d, VF x) {
  return ByAngle(
      d, x, [&](const auto& angle) HWY_ATTR { return TanOf(d, angle); },
      [](float v) { return std::tan(v); });
}

constexpr float kHalfPi = 1.57079632679489662f;

HWY_INLINE VF Atan(F32 d, VF x) {
  const VF t = hn::Abs(x), one = hn::Set(d, 1.0f);
  const auto large = hn::Gt(t, one);
  const VF u = hn::IfThenElse(large, hn::Div(one, t), t);
  const VF s = hn::Mul(u, u);
  const VF p = hn::MulAdd(
      hn::Mul(u, s),
      Polynomial(d, s, -3.333332837e-01f, 1.999967098e-01f, -1.427983344e-01f, 1.105822176e-01f,
                 -8.811084926e-02f, 6.741581857e-02f, -4.468972981e-02f, 2.253968827e-02f,
                 -7.317872252e-03f, 1.113771810e-03f),
      u);
  return hn::CopySignToAbs(hn::IfThenElse(large, hn::Sub(hn::Set(d, kHalfPi), p), p), x);
}

// asin(t) of t up to a half, else asin(sqrt((1 - t) / 2)).
struct Arc {
  VF p;
  hn::Mask<F32> large;
};
HWY_INLINE Arc ArcOf(F32 d, VF t) {
  const auto large = hn::Gt(t, hn::Set(d, 0.5f));
  const VF rest = hn::Mul(hn::Sub(hn::Set(d, 1.0f), t), hn::Set(d, 0.5f));
  const VF s = hn::IfThenElse(large, rest, hn::Mul(t, t));
  const VF u = hn::IfThenElse(large, hn::Sqrt(rest), t);
  const VF p = hn::MulAdd(hn::Mul(u, s),
                          Polynomial(d, s, 1.666665971e-01f, 7.500503957e-02f, 4.451695457e-02f,
                                     3.180771694e-02f, 1.443860400e-02f, 3.751645237e-02f),
                          u);
  return {p, large};
}

HWY_INLINE VF Asin(F32 d, VF x) {
  const auto [p, large] = ArcOf(d, hn::Abs(x));
  const VF y = hn::IfThenElse(large, hn::NegMulAdd(p, hn::Set(d, 2.0f), hn::Set(d, kHalfPi)), p);
  return hn::CopySignToAbs(y, x);
}

HWY_INLINE VF Acos(F32 d, VF x) {
  const auto [p, large] = ArcOf(d, hn::Abs(x));
  const VF twice = hn::Add(p, p);
  const auto negative = hn::Lt(x, hn::Zero(d));
  const VF far = hn::IfThenElse(negative, hn::Sub(hn::Set(d, 2 * kHalfPi), twice), twice);
  return hn::IfThenElse(large, far, hn::Sub(hn::Set(d, kHalfPi), hn::CopySignToAbs(p, x)));
}

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
