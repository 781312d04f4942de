#include "runtime/device/cpu/simd/interleave.h"

#include <bit>

#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/simd/interleave.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class T, int64_t kPlanes>
void ApartOf(const T* HWY_RESTRICT from, int64_t size, T* HWY_RESTRICT to, int64_t ld_to) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> d;
  constexpr int64_t kLanes = HWY_LANES(T);
  for (; i + kLanes <= size; i += kLanes) {
    hn::Vec<decltype(d)> v[4];
    const T* const at = from + i * kPlanes;
    if constexpr (kPlanes == 2) hn::LoadInterleaved2(d, at, v[0], v[1]);
    if constexpr (kPlanes == 3) hn::LoadInterleaved3(d, at, v[0], v[1], v[2]);
    if constexpr (kPlanes == 4) hn::LoadInterleaved4(d, at, v[0], v[1], v[2], v[3]);
    HWY_UNROLL(4) for (int64_t plane = 0; plane < kPlanes; ++plane) {
      hn::StoreU(v[plane], d, to + plane * ld_to + i);
    }
  }
#endif
  for (; i < size; ++i) {
    for (int64_t plane = 0; plane < kPlanes; ++plane) {
      to[plane * ld_to + i] = from[i * kPlanes + plane];
    }
  }
}

template <class T, int64_t kPlanes>
void TogetherOf(const T* HWY_RESTRICT from, int64_t ld_from, int64_t size, T* HWY_RESTRICT to) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> d;
  constexpr int64_t kLanes = HWY_LANES(T);
  for (; i + kLanes <= size; i += kLanes) {
    hn::Vec<decltype(d)> v[4];
    HWY_UNROLL(4) for (int64_t plane = 0; plane < kPlanes; ++plane) {
      v[plane] = hn::LoadU(d, from + plane * ld_from + i);
    }
    T* const at = to + i * kPlanes;
    if constexpr (kPlanes == 2) hn::StoreInterleaved2(v[0], v[1], d, at);
    if constexpr (kPlanes == 3) hn::StoreInterleaved3(v[0], v[1], v[2], d, at);
    if constexpr (kPlanes == 4) hn::StoreInterleaved4(v[0], v[1], v[2], v[3], d, at);
  }
#endif
  for (; i < size; ++i) {
    for (int64_t plane = 0; plane < kPlanes; ++plane) {
      to[i * kPlanes + plane] = from[plane * ld_from + i];
    }
  }
}

template <class T>
void Apart(const void* from, int64_t planes, int64_t size, void* to, int64_t ld_to) {
  const auto apart = planes == 2 ? ApartOf<T, 2> : planes == 3 ? ApartOf<T, 3> : ApartOf<T, 4>;
  apart(static_cast<const T*>(from), size, static_cast<T*>(to), ld_to);
}

template <class T>
void Together(const void* from, int64_t ld_from, int64_t planes, int64_t size, void* to) {
  const auto together = planes == 2   ? TogetherOf<T, 2>
                        : planes == 3 ? TogetherOf<T, 3>
                                      : TogetherOf<T, 4>;
  together(static_cast<const T*>(from), ld_from, size, static_cast<T*>(to));
}

template <class T>
constexpr InterleaveKernels kKernelsOf = {Apart<T>, Together<T>};

}  // namespace

// By the logarithm of an element's bytes.
constexpr InterleaveKernels kInterleaveKernels[] = {kKernelsOf<uint8_t>, kKernelsOf<uint16_t>,
                                                    kKernelsOf<uint32_t>, kKernelsOf<uint64_t>};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace reprise::cpu {

const InterleaveKernels& InterleaveKernelsFor(Isa isa, size_t element_bytes) {
  return REPRISE_CHOOSE_TARGET(isa, kInterleaveKernels)[std::countr_zero(element_bytes)];
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
