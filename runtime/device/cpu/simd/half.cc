#include "runtime/device/cpu/simd/half.h"

#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/simd/half.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/simd/half-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

template <class Half>
void AddTo(const void* x, float* y, int64_t count) {
  ForEachFloatOf<Half>(
      x, y, count,
      [](VF value, float* to)
          HWY_ATTR { hn::StoreU(hn::Add(hn::LoadU(F32(), to), value), F32(), to); },
      [](float value, float* to) { *to += value; });
}

// Narrows floats that are exact in bfloat16 to the upper half of each.
void NarrowBFloat16(const float* x, uint16_t* y, int64_t count) {
  const F32 d;
  const hn::RebindToUnsigned<F32> words;
  int64_t i = 0;
  for (; i + kFloatLanes <= count; i += kFloatLanes) {
    const auto bits = hn::BitCast(words, hn::LoadU(d, x + i));
    hn::StoreU(hn::TruncateTo(U16(), hn::ShiftRight<16>(bits)), U16(), y + i);
  }
  for (; i < count; ++i) y[i] = FloatToBFloat16(x[i]);
}

void NarrowFloat16(const float* x, uint16_t* y, int64_t count) { NarrowToFloat16(x, y, count); }

}  // namespace

constexpr HalfKernels kFloat16Kernels = {WidenHalves<Float16Bits>, NarrowFloat16,
                                         AddTo<Float16Bits>};
constexpr HalfKernels kBFloat16Kernels = {WidenHalves<BFloat16Bits>, NarrowBFloat16,
                                          AddTo<BFloat16Bits>};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const HalfKernels& HalfKernelsFor(Isa isa, DType half) {
  return half == DType::kFloat16 ? REPRISE_CHOOSE_TARGET(isa, kFloat16Kernels)
                                 : REPRISE_CHOOSE_TARGET(isa, kBFloat16Kernels);
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
