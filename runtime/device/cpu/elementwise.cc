#include "runtime/device/cpu/elementwise.h"

#include "runtime/device/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/elementwise.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/math-inl.h"

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
  if constexpr (op == Unary::kSilu) return Silu(d, x);
  if constexpr (op == Unary::kSquare) return hn::Mul(x, x);
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

void Clip(const float* x, float low, float high, float* y, int64_t count) {
  const F32 d;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    hn::StoreU(AtMost(d, AtLeast(d, hn::LoadU(d, x + i), low), high), d, y + i);
  }
  if (i < count) {
    const VF v = LoadPart(d, x + i, count - i);
    StorePart(AtMost(d, AtLeast(d, v, low), high), d, y + i, count - i);
  }
}

UnaryFunction UnaryOf(Unary op) {
  constexpr UnaryFunction kFunctions[] = {
      UnaryRun<Unary::kCopy>, UnaryRun<Unary::kNeg>,        UnaryRun<Unary::kAbs>,
      UnaryRun<Unary::kSqrt>, UnaryRun<Unary::kReciprocal>, UnaryRun<Unary::kFloor>,
      UnaryRun<Unary::kCeil>, UnaryRun<Unary::kRound>,      UnaryRun<Unary::kExp>,
      UnaryRun<Unary::kTanh>, UnaryRun<Unary::kSigmoid>,    UnaryRun<Unary::kErf>,
      UnaryRun<Unary::kRelu>, UnaryRun<Unary::kGelu>,       UnaryRun<Unary::kGeluTanh>,
      UnaryRun<Unary::kSilu>, UnaryRun<Unary::kSquare>};
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
      OfRun<Binary::kAdd>,     OfRun<Binary::kSub>,        OfRun<Binary::kMul>,
      OfRun<Binary::kDiv>,     OfRun<Binary::kMax>,        OfRun<Binary::kMin>,
      OfRun<Binary::kAddGelu>, OfRun<Binary::kAddGeluTanh>};
  return kFunctions[static_cast<int>(op)](run);
}

}  // namespace

constexpr ElementwiseKernels kElementwiseKernels = {UnaryOf, BinaryOf, Clip};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const ElementwiseKernels& ElementwiseKernelsFor(Isa isa) {
  return REPRISE_CHOOSE_TARGET(isa, kElementwiseKernels);
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
