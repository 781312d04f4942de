#include "runtime/device/cpu/half.h"

#include <cstring>

#include "runtime/device/cpu/targets.h"
#include "runtime/graph/tensor.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/half.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

using U16 = hn::Rebind<uint16_t, F32>;
using VU16 = hn::Vec<U16>;

struct Float16 {
  static HWY_INLINE VF Widen(F32 d, VU16 x) {
    return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, F32>(), x));
  }
  static float Widen(uint16_t x) { return HalfToFloat(x); }
};

struct BFloat16 {
  static HWY_INLINE VF Widen(F32 d, VU16 x) {
    const hn::RebindToUnsigned<F32> words;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(words, x)));
  }
  static float Widen(uint16_t x) { return BFloat16ToFloat(x); }
};

// The baseline's emulated conversions truncate.
constexpr bool kVectors = HWY_TARGET != HWY_SCALAR;
constexpr int64_t kLanes = HWY_LANES(float);

// f(the floats from x on, where they belong), a vector or one at a time.
template <class Half, class Vectors, class One>
HWY_INLINE void ForEach(const void* x, float* y, int64_t count, Vectors vectors, One one) {
  const auto* from = static_cast<const std::byte*>(x);
  int64_t i = 0;
  if constexpr (kVectors) {
    for (; i + kLanes <= count; i += kLanes) {
      // As numbers they may be misaligned.
      HWY_ALIGN uint16_t lanes[kLanes];
      std::memcpy(lanes, from + 2 * i, sizeof(lanes));
      vectors(Half::Widen(F32(), hn::Load(U16(), lanes)), y + i);
    }
  }
  for (; i < count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, from + 2 * i, sizeof(bits));
    one(Half::Widen(bits), y + i);
  }
}

template <class Half>
void Widen(const void* x, float* y, int64_t count) {
  ForEach<Half>(
      x, y, count, [](VF value, float* to) HWY_ATTR { hn::StoreU(value, F32(), to); },
      [](float value, float* to) { *to = value; });
}

template <class Half>
void AddTo(const void* x, float* y, int64_t count) {
  ForEach<Half>(
      x, y, count,
      [](VF value, float* to)
          HWY_ATTR { hn::StoreU(hn::Add(hn::LoadU(F32(), to), value), F32(), to); },
      [](float value, float* to) { *to += value; });
}

}  // namespace

constexpr HalfKernels kFloat16Kernels = {Widen<Float16>, AddTo<Float16>};
constexpr HalfKernels kBFloat16Kernels = {Widen<BFloat16>, AddTo<BFloat16>};

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
