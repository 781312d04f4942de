// The epilogue of sums of products of bytes. Its code is kept small for the usual cases, which are
// no activation or a clip. This is included inside a kernel file after hwy/highway.h, once for each
// Highway target.
#if defined(REPRISE_CPU_REQUANTIZE_FINISH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_REQUANTIZE_FINISH_INL_H_
#undef REPRISE_CPU_REQUANTIZE_FINISH_INL_H_
#else
#define REPRISE_CPU_REQUANTIZE_FINISH_INL_H_
#endif

#include <type_traits>

#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/conv_activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

enum class Follows { kNothing, kClip, kOther };

// Selects the activation again for each vector: computing it takes longer than selecting it.
HWY_MAYBE_UNUSED HWY_NOINLINE VF ActivateOther(F32 d, VF x, const ConvActivation& activation) {
  VF y = x;
  WithConvActivation(activation.kind, [&](auto kind) HWY_ATTR {
    y = ActivateConv<decltype(kind)::value>(d, x, activation);
  });
  return y;
}

template <Follows follows>
HWY_INLINE VF ActivateBy(F32 d, VF x, const ConvActivation& activation) {
  if constexpr (follows == Follows::kNothing) return x;
  if constexpr (follows == Follows::kClip) {
    return ActivateConv<ConvActivation::Kind::kClip>(d, x, activation);
  }
  return ActivateOther(d, x, activation);
}

template <Follows follows>
using KnownFollows = std::integral_constant<Follows, follows>;

// Calls `finish` with the kind of activation as a type.
template <class Finish>
HWY_INLINE void WithFollows(const ConvActivation& activation, const Finish& finish) {
  if (activation.none()) return finish(KnownFollows<Follows::kNothing>());
  if (activation.clip()) return finish(KnownFollows<Follows::kClip>());
  return finish(KnownFollows<Follows::kOther>());
}

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
