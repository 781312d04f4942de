#include "runtime/device/cpu/simd/quantize.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/simd/quantize.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/simd/quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = HWY_LANES(float);

using I32 = hn::RebindToSigned<F32>;
template <class T>
using DT = hn::Rebind<T, F32>;  // as many lanes of T as of floats

template <class T>
HWY_INLINE VF Widened(F32 d, const T* p) {
  if constexpr (std::is_same_v<T, int32_t>) {
    return hn::ConvertTo(d, hn::LoadU(I32(), p));
  } else {
    return hn::ConvertTo(d, hn::PromoteTo(I32(), hn::LoadU(DT<T>(), p)));
  }
}

// Returns the zero points of the lanes from `i` on.
template <class T, bool many>
HWY_INLINE VF ZeroAt(F32 d, const T* zero, int64_t i) {
  if (zero == nullptr) return hn::Zero(d);
  if constexpr (many) return Widened(d, zero + i);
  return hn::Set(d, static_cast<float>(*zero));
}

template <bool many>
HWY_INLINE VF ScaleAt(F32 d, const float* scale, int64_t i) {
  if constexpr (many) return hn::LoadU(d, scale + i);
  return hn::Set(d, *scale);
}

struct ToSteps {
  template <class T>
  using In = float;
  template <class T>
  using Out = T;
  template <class T>
  static HWY_INLINE void Apply(F32 d, const float* x, VF scale, VF zero, T* y) {
    const VF value = hn::Add(Steps<T>(d, hn::LoadU(d, x), scale, zero), zero);
#if HWY_TARGET == HWY_AVX3
    // Whole numbers that a T holds need none of the care that Highway takes of others.
    if constexpr (sizeof(T) == 1) {
      const __m128i bytes = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(value.raw));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(y), bytes);
      return;
    }
#endif
    hn::StoreU(hn::DemoteTo(DT<T>(), hn::ConvertTo(I32(), value)), DT<T>(), y);
  }
};

struct FromSteps {
  template <class T>
  using In = T;
  template <class T>
  using Out = float;
  template <class T>
  static HWY_INLINE void Apply(F32 d, const T* x, VF scale, VF zero, float* y) {
    hn::StoreU(hn::Mul(hn::Sub(Widened(d, x), zero), scale), d, y);
  }
};

struct ThroughSteps {
  template <class T>
  using In = float;
  template <class T>
  using Out = float;
  template <class T>
  static HWY_INLINE void Apply(F32 d, const float* x, VF scale, VF zero, float* y) {
    // Steps of a negative number may be -0, which no integer is.
    const VF steps = hn::Add(Steps<T>(d, hn::LoadU(d, x), scale, zero), hn::Zero(d));
    hn::StoreU(hn::Mul(steps, scale), d, y);
  }
};

template <class F, class T, bool many>
void Run(const void* from, const float* scale, const void* zeros, void* to, int64_t count) {
  using In = typename F::template In<T>;
  using Out = typename F::template Out<T>;
  const F32 d;
  const auto* x = static_cast<const In*>(from);
  const auto* zero = static_cast<const T*>(zeros);
  auto* y = static_cast<Out*>(to);
  const VF scale_of_all = many ? hn::Zero(d) : ScaleAt<many>(d, scale, 0);
  const VF zero_of_all = many ? hn::Zero(d) : ZeroAt<T, many>(d, zero, 0);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    if constexpr (many) {
      F::template Apply<T>(d, x + i, ScaleAt<many>(d, scale, i), ZeroAt<T, many>(d, zero, i),
                           y + i);
    } else {
      F::template Apply<T>(d, x + i, scale_of_all, zero_of_all, y + i);
    }
  }
  if (i >= count) return;
  // The rest by way of whole vectors: nothing after the arrays is touched.
  const size_t rest = static_cast<size_t>(count - i);
  In x_part[kLanes] = {};
  Out y_part[kLanes];
  std::memcpy(x_part, x + i, rest * sizeof(In));
  if constexpr (many) {
    float scale_part[kLanes];
    T zero_part[kLanes] = {};
    std::fill_n(scale_part, kLanes, 1.0f);
    std::memcpy(scale_part, scale + i, rest * sizeof(float));
    if (zero != nullptr) std::memcpy(zero_part, zero + i, rest * sizeof(T));
    F::template Apply<T>(d, x_part, hn::LoadU(d, scale_part), Widened(d, zero_part), y_part);
  } else {
    F::template Apply<T>(d, x_part, scale_of_all, zero_of_all, y_part);
  }
  std::memcpy(y + i, y_part, rest * sizeof(Out));
}

template <class F>
QuantizeFunction FunctionOf(DType dtype, bool many) {
  if constexpr (std::is_same_v<F, FromSteps>) {
    if (dtype == DType::kInt32) return many ? Run<F, int32_t, true> : Run<F, int32_t, false>;
  }
  switch (dtype) {
    case DType::kInt8:
      return many ? Run<F, int8_t, true> : Run<F, int8_t, false>;
    case DType::kUInt8:
      return many ? Run<F, uint8_t, true> : Run<F, uint8_t, false>;
    case DType::kInt16:
      return many ? Run<F, int16_t, true> : Run<F, int16_t, false>;
    case DType::kUInt16:
      return many ? Run<F, uint16_t, true> : Run<F, uint16_t, false>;
    default:
      return nullptr;
  }
}

// Comparisons with NaN are false, so that it never enters the range.
HWY_INLINE void Widen(VF x, VF& low, VF& high) {
  low = hn::IfThenElse(hn::Lt(x, low), x, low);
  high = hn::IfThenElse(hn::Gt(x, high), x, high);
}

void Range(const float* x, int64_t count, float& low, float& high) {
  const F32 d;
  constexpr int kChains = 4;  // that need not wait for each other
  VF lows[kChains], highs[kChains];
  for (int c = 0; c < kChains; ++c) {
    lows[c] = hn::Set(d, low);
    highs[c] = hn::Set(d, high);
  }
  int64_t i = 0;
  for (; i + kChains * kLanes <= count; i += kChains * kLanes) {
    for (int c = 0; c < kChains; ++c) Widen(hn::LoadU(d, x + i + c * kLanes), lows[c], highs[c]);
  }
  for (; i + kLanes <= count; i += kLanes) Widen(hn::LoadU(d, x + i), lows[0], highs[0]);
  for (int c = 1; c < kChains; ++c) {
    lows[0] = hn::Min(lows[0], lows[c]);
    highs[0] = hn::Max(highs[0], highs[c]);
  }
  float low_lanes[kLanes], high_lanes[kLanes];
  hn::StoreU(lows[0], d, low_lanes);
  hn::StoreU(highs[0], d, high_lanes);
  low = *std::min_element(low_lanes, low_lanes + kLanes);
  high = *std::max_element(high_lanes, high_lanes + kLanes);
  for (; i < count; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
}

}  // namespace

constexpr QuantizeKernels kQuantizeKernels = {FunctionOf<ToSteps>, FunctionOf<FromSteps>,
                                              FunctionOf<ThroughSteps>, Range};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const QuantizeKernels& QuantizeKernelsFor(Isa isa) {
  return REPRISE_CHOOSE_TARGET(isa, kQuantizeKernels);
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
