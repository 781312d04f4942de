#include "runtime/device/cpu/int8/row_bytes.h"

#include <cstring>

#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/int8/row_bytes.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kRowLanes = HWY_LANES(float);

// The range of a row and 0; `low` is NaN where a number is not finite.
struct RowRange {
  float low, high;
};

HWY_INLINE RowRange RangeOfRow(const float* HWY_RESTRICT row, int64_t count) {
  const F32 d;
  constexpr int kChains = 4;  // that need not wait for each other
  VF low[kChains], high[kChains], odd[kChains];
  for (int c = 0; c < kChains; ++c) low[c] = high[c] = odd[c] = hn::Zero(d);
  const auto take = [&](VF x, int c) HWY_ATTR {
    low[c] = hn::Min(low[c], x);
    high[c] = hn::Max(high[c], x);
    odd[c] = hn::MulAdd(x, hn::Zero(d), odd[c]);  // NaN where x is not finite
  };
  int64_t i = 0;
  for (; i + kChains * kRowLanes <= count; i += kChains * kRowLanes) {
    for (int c = 0; c < kChains; ++c) take(hn::LoadU(d, row + i + c * kRowLanes), c);
  }
  for (; i < count; i += kRowLanes) {
    take(i + kRowLanes <= count ? hn::LoadU(d, row + i) : LoadPart(d, row + i, count - i), 0);
  }
  for (int c = 1; c < kChains; ++c) {
    low[0] = hn::Min(low[0], low[c]);
    high[0] = hn::Max(high[0], high[c]);
    odd[0] = hn::Add(odd[0], odd[c]);
  }
  return {hn::GetLane(hn::MinOfLanes(d, low[0])) + hn::GetLane(hn::SumOfLanes(d, odd[0])),
          hn::GetLane(hn::MaxOfLanes(d, high[0]))};
}

// Bytes of the steps of as many numbers as a vector has.
HWY_INLINE void StoreSteps(VF x, VF inverse, hn::Vec<hn::RebindToSigned<F32>> zero,
                           uint8_t* bytes) {
  const hn::RebindToSigned<F32> d32;
  const hn::RebindToUnsigned<F32> du;
  const hn::Rebind<uint8_t, F32> d8;
  const auto steps = hn::Add(hn::NearestInt(hn::Mul(x, inverse)), zero);
  const auto inside = hn::Min(hn::Max(steps, hn::Zero(d32)), hn::Set(d32, 255));
#if HWY_TARGET == HWY_SCALAR
  *bytes = static_cast<uint8_t>(hn::GetLane(inside));
  (void)du;
  (void)d8;
#else
  hn::StoreU(hn::TruncateTo(d8, hn::BitCast(du, inside)), d8, bytes);
#endif
}

ops::RowScale RoundRow(const float* HWY_RESTRICT row, int64_t count, uint8_t* HWY_RESTRICT bytes) {
  const F32 d;
  const RowRange range = RangeOfRow(row, count);
  const ops::RowScale scale = ops::RowScaleOf(range.low, range.high);
  if (!(scale.inverse > 0)) {
    std::memset(bytes, scale.zero, static_cast<size_t>(count));
    return scale;
  }
  const VF inverse = hn::Set(d, scale.inverse);
  const auto zero = hn::Set(hn::RebindToSigned<F32>(), scale.zero);
  int64_t i = 0;
  for (; i + kRowLanes <= count; i += kRowLanes) {
    StoreSteps(hn::LoadU(d, row + i), inverse, zero, bytes + i);
  }
  if (i < count) {
    uint8_t part[kRowLanes];
    StoreSteps(LoadPart(d, row + i, count - i), inverse, zero, part);
    std::memcpy(bytes + i, part, static_cast<size_t>(count - i));
  }
  return scale;
}

}  // namespace

constexpr RowBytesKernels kRowBytesKernels = {RoundRow};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const RowBytesKernels& RowBytesKernelsFor(Isa isa) {
  return REPRISE_CHOOSE_TARGET(isa, kRowBytesKernels);
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
