#include "runtime/device/cpu/elementwise/elementwise.h"

#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/elementwise/elementwise.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/simd/angles-inl.h"
#include "runtime/device/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = HWY_LANES(float);

template <Unary op>
HWY_INLINE VF Apply(F32 d, VF x) {
  if constexpr (op == Unary::kCopy) return x;
  if constexpr (op == Unary::kNeg) return hn::Neg(x);
  if constexpr (op == Unary::kAbs) return hn::Abs(x);
  if constexpr (op == Unary::kSqrt) return hn::Sqrt(x);
  if constexpr (op == Unary::kReciprocal) return hn::Div(hn::Set(d, 1.0f), x);
  if constexpr (op == Unary::kFloor) return hn::Floor(x);
  if constexpr (op == Unary::kCeil) return hn::Ceil(x);
  if constexpr (op == Unary::kRound) return hn::Round(x);
  if constexpr (op == Unary::kExp) return Exp(d, x);
  if constexpr (op == Unary::kTanh) return Tanh(d, x);
  if constexpr (op == Unary::kSigmoid) return Sigmoid(d, x);
  if constexpr (op == Unary::kErf) return Erf(d, x);
  if constexpr (op == Unary::kRelu) return Relu(d, x);
  if constexpr (op == Unary::kGelu) return Gelu(d, x);
  if constexpr (op == Unary::kGeluTanh) return GeluTanh(d, x);
  if constexpr (op == Unary::kRootPower) {
    const VF infinity = hn::Set(d, INFINITY);
    const VF root = hn::Sqrt(hn::Add(x, hn::Zero(d)));  // The sum is never -0, whose root is -0.
    return hn::IfThenElse(hn::Eq(x, hn::Neg(infinity)), infinity, root);
  }
  if constexpr (op == Unary::kGeluDoubled) return Gelu<true>(d, x);
  if constexpr (op == Unary::kGeluTanhDoubled) return GeluTanh<true>(d, x);
  if constexpr (op == Unary::kSilu) return Silu(d, x);
  if constexpr (op == Unary::kQuickGelu) return QuickGelu(d, x);
  if constexpr (op == Unary::kSquare) return hn::Mul(x, x);
  if constexpr (op == Unary::kSign) return Sign(d, x);
  if constexpr (op == Unary::kLog) return Log(d, x);
  if constexpr (op == Unary::kSin) return Sin(d, x);
  if constexpr (op == Unary::kCos) return Cos(d, x);
  if constexpr (op == Unary::kTan) return Tan(d, x);
  if constexpr (op == Unary::kAsin) return Asin(d, x);
  if constexpr (op == Unary::kAcos) return Acos(d, x);
  if constexpr (op == Unary::kAtan) return Atan(d, x);
  if constexpr (op == Unary::kSoftplus) return Softplus(d, x);
  if constexpr (op == Unary::kSoftsign) {
    return hn::Div(x, hn::Add(hn::Set(d, 1.0f), hn::Abs(x)));
  }
  if constexpr (op == Unary::kMish) return Mish(d, x);
  if constexpr (op == Unary::kHardSwish) return HardSwish(d, x);
}

template <Shaped op>
HWY_INLINE VF Apply(F32 d, VF x, float alpha, float beta) {
  const VF a = hn::Set(d, alpha), b = hn::Set(d, beta);
  if constexpr (op == Shaped::kClip) return AtMost(d, AtLeast(d, x, alpha), beta);
  if constexpr (op == Shaped::kLeakyRelu) return LeakyRelu(d, x, alpha);
  if constexpr (op == Shaped::kElu) return Elu(d, x, alpha);
  if constexpr (op == Shaped::kSelu) return hn::Mul(b, Elu(d, x, alpha));
  if constexpr (op == Shaped::kCelu) {
    const VF below = hn::Mul(a, Expm1Negative(d, hn::Div(x, a)));
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), below, x);
  }
  if constexpr (op == Shaped::kHardSigmoid) return HardSigmoid(d, x, alpha, beta);
  if constexpr (op == Shaped::kThresholdedRelu) return hn::IfThenElseZero(hn::Gt(x, a), x);
  if constexpr (op == Shaped::kShrink) {
    const VF above = hn::IfThenElseZero(hn::Gt(x, a), hn::Sub(x, b));
    return hn::IfThenElse(hn::Lt(x, hn::Neg(a)), hn::Add(x, b), above);
  }
  if constexpr (op == Shaped::kQuickGelu) return hn::Mul(x, Sigmoid(d, hn::Mul(x, a)));
  if constexpr (op == Shaped::kPower) {
    auto rest = static_cast<int>(alpha);
    VF square = x, power = hn::Set(d, 1.0f);
    for (; rest > 1; rest /= 2, square = hn::Mul(square, square)) {
      if (rest % 2 == 1) power = hn::Mul(power, square);
    }
    return hn::Mul(power, square);
  }
}

// NaN in either operand gives NaN.
HWY_INLINE VF KeepNan(VF a, VF b, VF result) {
  return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::IsNaN(b), b, result));
}

template <Binary op>
HWY_INLINE VF Apply(F32 d, VF a, VF b) {
  if constexpr (op == Binary::kAdd) return hn::Add(a, b);
  if constexpr (op == Binary::kSub) return hn::Sub(a, b);
  if constexpr (op == Binary::kMul) return hn::Mul(a, b);
  if constexpr (op == Binary::kDiv) return hn::Div(a, b);
  if constexpr (op == Binary::kMax) return KeepNan(a, b, hn::Max(a, b));
  if constexpr (op == Binary::kMin) return KeepNan(a, b, hn::Min(a, b));
  if constexpr (op == Binary::kAddGelu) return Gelu(d, hn::Add(a, b));
  if constexpr (op == Binary::kAddGeluTanh) return GeluTanh(d, hn::Add(a, b));
  if constexpr (op == Binary::kPRelu) {
    return hn::IfThenElse(hn::Lt(a, hn::Zero(d)), hn::Mul(a, b), a);
  }
}

template <Unary op>
void UnaryRun(const float* x, float* y, int64_t count) {
  const F32 d;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(Apply<op>(d, hn::LoadU(d, x + i)), d, y + i);
  if (i < count) StorePart(Apply<op>(d, LoadPart(d, x + i, count - i)), d, y + i, count - i);
}

template <Binary op, Run run>
void BinaryRun(const float* a, const float* b, float* y, int64_t count) {
  const F32 d;
  const VF scalar = run == Run::kScalarA   ? hn::Set(d, *a)
                    : run == Run::kScalarB ? hn::Set(d, *b)
                                           : hn::Zero(d);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const VF va = run == Run::kScalarA ? scalar : hn::LoadU(d, a + i);
    const VF vb = run == Run::kScalarB ? scalar : hn::LoadU(d, b + i);
    hn::StoreU(Apply<op>(d, va, vb), d, y + i);
  }
  if (i < count) {
    const VF va = run == Run::kScalarA ? scalar : LoadPart(d, a + i, count - i);
    const VF vb = run == Run::kScalarB ? scalar : LoadPart(d, b + i, count - i);
    StorePart(Apply<op>(d, va, vb), d, y + i, count - i);
  }
}

template <Shaped op>
void ShapedRun(const float* x, float alpha, float beta, float* y, int64_t count) {
  const F32 d;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    hn::StoreU(Apply<op>(d, hn::LoadU(d, x + i), alpha, beta), d, y + i);
  }
  if (i < count) {
    const VF v = LoadPart(d, x + i, count - i);
    StorePart(Apply<op>(d, v, alpha, beta), d, y + i, count - i);
  }
}

UnaryFunction UnaryOf(Unary op) {
  constexpr UnaryFunction kFunctions[] = {UnaryRun<Unary::kCopy>,
                                          UnaryRun<Unary::kNeg>,
                                          UnaryRun<Unary::kAbs>,
                                          UnaryRun<Unary::kSqrt>,
                                          UnaryRun<Unary::kReciprocal>,
                                          UnaryRun<Unary::kFloor>,
                                          UnaryRun<Unary::kCeil>,
                                          UnaryRun<Unary::kRound>,
                                          UnaryRun<Unary::kExp>,
                                          UnaryRun<Unary::kTanh>,
                                          UnaryRun<Unary::kSigmoid>,
                                          UnaryRun<Unary::kErf>,
                                          UnaryRun<Unary::kRelu>,
                                          UnaryRun<Unary::kGelu>,
                                          UnaryRun<Unary::kGeluTanh>,
                                          UnaryRun<Unary::kSilu>,
                                          UnaryRun<Unary::kSquare>,
                                          UnaryRun<Unary::kSign>,
                                          UnaryRun<Unary::kLog>,
                                          UnaryRun<Unary::kSin>,
                                          UnaryRun<Unary::kCos>,
                                          UnaryRun<Unary::kTan>,
                                          UnaryRun<Unary::kAsin>,
                                          UnaryRun<Unary::kAcos>,
                                          UnaryRun<Unary::kAtan>,
                                          UnaryRun<Unary::kSoftplus>,
                                          UnaryRun<Unary::kSoftsign>,
                                          UnaryRun<Unary::kMish>,
                                          UnaryRun<Unary::kHardSwish>,
                                          UnaryRun<Unary::kQuickGelu>,
                                          UnaryRun<Unary::kRootPower>,
                                          UnaryRun<Unary::kGeluDoubled>,
                                          UnaryRun<Unary::kGeluTanhDoubled>};
  return kFunctions[static_cast<int>(op)];
}

ShapedFunction ShapedOf(Shaped op) {
  constexpr ShapedFunction kFunctions[] = {ShapedRun<Shaped::kClip>,
                                           ShapedRun<Shaped::kLeakyRelu>,
                                           ShapedRun<Shaped::kElu>,
                                           ShapedRun<Shaped::kSelu>,
                                           ShapedRun<Shaped::kCelu>,
                                           ShapedRun<Shaped::kHardSigmoid>,
                                           ShapedRun<Shaped::kThresholdedRelu>,
                                           ShapedRun<Shaped::kShrink>,
                                           ShapedRun<Shaped::kQuickGelu>,
                                           ShapedRun<Shaped::kPower>};
  return kFunctions[static_cast<int>(op)];
}

template <Binary op>
BinaryFunction OfRun(Run run) {
  return run == Run::kBoth      ? BinaryRun<op, Run::kBoth>
         : run == Run::kScalarA ? BinaryRun<op, Run::kScalarA>
                                : BinaryRun<op, Run::kScalarB>;
}

BinaryFunction BinaryOf(Binary op, Run run) {
  constexpr BinaryFunction (*kFunctions[])(Run) = {
      OfRun<Binary::kAdd>,     OfRun<Binary::kSub>,         OfRun<Binary::kMul>,
      OfRun<Binary::kDiv>,     OfRun<Binary::kMax>,         OfRun<Binary::kMin>,
      OfRun<Binary::kAddGelu>, OfRun<Binary::kAddGeluTanh>, OfRun<Binary::kPRelu>};
  return kFunctions[static_cast<int>(op)](run);
}

}  // namespace

constexpr ElementwiseKernels kElementwiseKernels = {UnaryOf, BinaryOf, ShapedOf};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const ElementwiseKernels& ElementwiseKernelsFor(Isa isa) {
  return REPRISE_CHOOSE_TARGET(isa, kElementwiseKernels);
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
