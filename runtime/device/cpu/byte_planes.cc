#include "runtime/device/cpu/byte_planes.h"

#include <algorithm>
#include <cstring>

#include "runtime/device/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/byte_planes.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/conv_activation-inl.h"
#include "runtime/device/cpu/quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = HWY_LANES(float);

HWY_INLINE VF Floats(const ByteSum::Side& side, const uint8_t* bytes) {
  const F32 d;
  const hn::RebindToSigned<F32> d32;
  const hn::Rebind<uint8_t, F32> d8;
  // Signed bytes with the highest bit flipped are what they are above -128.
  const auto raised =
      hn::Xor(hn::LoadU(d8, bytes), hn::Set(d8, static_cast<uint8_t>(side.is_signed ? 0x80 : 0)));
  const auto steps =
      hn::Sub(hn::PromoteTo(d32, raised), hn::Set(d32, side.zero + (side.is_signed ? 128 : 0)));
  return hn::Mul(hn::ConvertTo(d, steps), hn::Set(d, side.scale));
}

template <ConvActivation::Kind kind>
HWY_NOINLINE void AddBytes(const ByteSum& sum, const uint8_t* a, const uint8_t* b, uint8_t* y,
                           int64_t count) {
  const F32 d;
  const ByteSteps steps(sum.y.scale, sum.y.zero, sum.y.is_signed);
  const auto add = [&](const uint8_t* left, const uint8_t* right, uint8_t* to) HWY_ATTR {
    const VF x = hn::Add(Floats(sum.a, left), Floats(sum.b, right));
    steps.Store(ActivateConv<kind>(d, x, sum.activation), to);
  };
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) add(a + i, b + i, y + i);
  if (i == count) return;
  uint8_t left[kLanes] = {}, right[kLanes] = {}, to[kLanes];
  std::memcpy(left, a + i, static_cast<size_t>(count - i));
  std::memcpy(right, b + i, static_cast<size_t>(count - i));
  add(left, right, to);
  std::memcpy(y + i, to, static_cast<size_t>(count - i));
}

void Add(const ByteSum& sum, const uint8_t* a, const uint8_t* b, uint8_t* y, int64_t count) {
  WithConvActivation(sum.activation.kind,
                     [&](auto kind) HWY_ATTR { AddBytes<kind>(sum, a, b, y, count); });
}

template <class T>
HWY_NOINLINE void LargestOf(const uint8_t* const* rows, int64_t count, int64_t bytes, uint8_t* y) {
  const hn::ScalableTag<T> d;
  constexpr int64_t kBytes = HWY_LANES(T);
  const auto at = [&](int64_t row, int64_t i)
                      HWY_ATTR { return hn::LoadU(d, reinterpret_cast<const T*>(rows[row] + i)); };
  int64_t i = 0;
  for (; i + kBytes <= bytes; i += kBytes) {
    auto largest = at(0, i);
    for (int64_t row = 1; row < count; ++row) largest = hn::Max(largest, at(row, i));
    hn::StoreU(largest, d, reinterpret_cast<T*>(y + i));
  }
  for (; i < bytes; ++i) {
    T largest = static_cast<T>(rows[0][i]);
    for (int64_t row = 1; row < count; ++row) {
      largest = std::max(largest, static_cast<T>(rows[row][i]));
    }
    y[i] = static_cast<uint8_t>(largest);
  }
}

void Largest(const uint8_t* const* rows, int64_t count, bool is_signed, int64_t bytes, uint8_t* y) {
  return is_signed ? LargestOf<int8_t>(rows, count, bytes, y)
                   : LargestOf<uint8_t>(rows, count, bytes, y);
}

}  // namespace

constexpr BytePlaneKernels kBytePlaneKernels = {Add, Largest};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const BytePlaneKernels& BytePlaneKernelsFor(Isa isa) {
  return REPRISE_CHOOSE_TARGET(isa, kBytePlaneKernels);
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
