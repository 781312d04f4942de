#include "runtime/device/cpu/resample.h"

#include <algorithm>

#include "runtime/device/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/resample.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = HWY_LANES(float);

// The elements at a vector of places. Where columns grow they are neighbours of one vector.
HWY_INLINE VF Pick(F32 d, const float* HWY_RESTRICT from, int64_t in_columns,
                   const int32_t* HWY_RESTRICT places) {
#if HWY_TARGET == HWY_SCALAR
  return hn::LoadU(d, from + places[0]);
#else
  const hn::RebindToSigned<F32> di;
  const auto at = hn::LoadU(di, places);
  const int64_t first = std::min<int64_t>(places[0], in_columns - kLanes);
  if (first < 0) {  // The whole row.
    return hn::TableLookupLanes(LoadPart(d, from, in_columns), hn::IndicesFromVec(d, at));
  }
  if (places[kLanes - 1] - first >= kLanes) return hn::GatherIndex(d, from, at);
  const auto lanes = hn::Sub(at, hn::Set(di, static_cast<int32_t>(first)));
  return hn::TableLookupLanes(hn::LoadU(d, from + first), hn::IndicesFromVec(d, lanes));
#endif
}

void Columns(const ResampledColumns& c, const float* HWY_RESTRICT from, float* HWY_RESTRICT to) {
  const F32 d;
  const int32_t* HWY_RESTRICT places = c.places.data();
  const float* HWY_RESTRICT weights = c.weights.data();
  for (int64_t i = 0; i < c.columns; i += kLanes) {
    VF sum = Pick(d, from, c.in_columns, places + i);
    // The weight of a lone element is 1.
    if (c.taps > 1) sum = hn::Mul(sum, hn::LoadU(d, weights + i));
    for (int tap = 1; tap < c.taps; ++tap) {
      const VF x = Pick(d, from, c.in_columns, places + tap * c.stride + i);
      sum = hn::MulAdd(x, hn::LoadU(d, weights + tap * c.stride + i), sum);
    }
    hn::StoreU(sum, d, to + i);
  }
}

void Rows(const float* const* rows, const float* weights, int count, int64_t size,
          float* HWY_RESTRICT to) {
  const F32 d;
  for (int64_t i = 0; i < size; i += kLanes) {
    const int64_t live = size - i;
    const auto load = [&](int row) HWY_ATTR {
      return live >= kLanes ? hn::LoadU(d, rows[row] + i) : LoadPart(d, rows[row] + i, live);
    };
    VF sum = load(0);
    if (count > 1) sum = hn::Mul(sum, hn::Set(d, weights[0]));
    for (int row = 1; row < count; ++row) {
      sum = hn::MulAdd(load(row), hn::Set(d, weights[row]), sum);
    }
    if (live >= kLanes) {
      hn::StoreU(sum, d, to + i);
    } else {
      StorePart(sum, d, to + i, live);
    }
  }
}

}  // namespace

constexpr ResampleKernels kResampleKernels = {Columns, Rows};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const ResampleKernels& ResampleKernelsFor(Isa isa) {
  return REPRISE_CHOOSE_TARGET(isa, kResampleKernels);
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
