// The activations of convolutions on vectors. Included inside a kernel file after hwy/highway.h,
// once for each Highway target.
#if defined(REPRISE_CPU_CONV_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_CONV_ACTIVATION_INL_H_
#undef REPRISE_CPU_CONV_ACTIVATION_INL_H_
#else
#define REPRISE_CPU_CONV_ACTIVATION_INL_H_
#endif

#include <type_traits>

#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/conv_finish.h"
#include "runtime/device/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

template <ConvActivation::Kind kind>
HWY_INLINE VF ActivateConv(F32 d, VF x, const ConvActivation& activation) {
  using Kind = ConvActivation::Kind;
  if constexpr (kind == Kind::kClip) {
    return AtMost(d, AtLeast(d, x, activation.low), activation.high);
  }
  if constexpr (kind == Kind::kLeakyRelu) return LeakyRelu(d, x, activation.slope);
  if constexpr (kind == Kind::kHardSwish) return HardSwish(d, x);
  if constexpr (kind == Kind::kGelu) return Gelu(d, x);
  if constexpr (kind == Kind::kGeluTanh) return GeluTanh(d, x);
  if constexpr (kind == Kind::kGeluDoubled) return Gelu<true>(d, x);
  if constexpr (kind == Kind::kGeluTanhDoubled) return GeluTanh<true>(d, x);
  if constexpr (kind == Kind::kTanh) return Tanh(d, x);
  if constexpr (kind == Kind::kSigmoid) return Sigmoid(d, x);
  if constexpr (kind == Kind::kSilu) return Silu(d, x);
  if constexpr (kind == Kind::kElu) return Elu(d, x, activation.slope);
  if constexpr (kind == Kind::kMish) return Mish(d, x);
  return x;
}

template <ConvActivation::Kind kind>
using KnownConvActivation = std::integral_constant<ConvActivation::Kind, kind>;

// Calls `finish` with the kind as a type, so that the loops within know it.
template <class Finish>
HWY_INLINE void WithConvActivation(ConvActivation::Kind kind, const Finish& finish) {
  using Kind = ConvActivation::Kind;
  switch (kind) {
    case Kind::kNone:
      return finish(KnownConvActivation<Kind::kNone>());
    case Kind::kClip:
      return finish(KnownConvActivation<Kind::kClip>());
    case Kind::kLeakyRelu:
      return finish(KnownConvActivation<Kind::kLeakyRelu>());
    case Kind::kHardSwish:
      return finish(KnownConvActivation<Kind::kHardSwish>());
    case Kind::kGelu:
      return finish(KnownConvActivation<Kind::kGelu>());
    case Kind::kGeluTanh:
      return finish(KnownConvActivation<Kind::kGeluTanh>());
    case Kind::kGeluDoubled:
      return finish(KnownConvActivation<Kind::kGeluDoubled>());
    case Kind::kGeluTanhDoubled:
      return finish(KnownConvActivation<Kind::kGeluTanhDoubled>());
    case Kind::kTanh:
      return finish(KnownConvActivation<Kind::kTanh>());
    case Kind::kSigmoid:
      return finish(KnownConvActivation<Kind::kSigmoid>());
    case Kind::kSilu:
      return finish(KnownConvActivation<Kind::kSilu>());
    case Kind::kElu:
      return finish(KnownConvActivation<Kind::kElu>());
    case Kind::kMish:
      return finish(KnownConvActivation<Kind::kMish>());
  }
}

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
