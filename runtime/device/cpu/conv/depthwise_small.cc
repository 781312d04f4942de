#include "runtime/device/cpu/conv/depthwise_small.h"

#include <algorithm>
#include <type_traits>

#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/conv/depthwise_small.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = HWY_LANES(float);
// Windows at a time: enough sums to wait for none.
constexpr int kMostColumns = 8, kFewColumns = 5;

// Computes `kRows` by `kColumns` windows, the first of which begins at `x`; they move by kStride
// columns, or by the stride of the planes if that is 0.
template <int kRows, int kColumns, int kStride>
HWY_INLINE void ConvolveSome(const ChannelPlanes& planes, const float* x, const ChannelTaps& taps,
                             float* y) {
  const F32 d;
  const int64_t row = planes.stride.rows * planes.padded.columns * kLanes;
  const int64_t column = (kStride > 0 ? kStride : planes.stride.columns) * kLanes;
  const auto live = hn::FirstN(d, static_cast<size_t>(std::min(taps.live, kLanes)));
  const auto load = [&](const float* from) HWY_ATTR { return hn::MaskedLoad(live, d, from); };
  VF sums[kRows * kColumns];
  HWY_UNROLL(10) for (int i = 0; i < kRows * kColumns; ++i) sums[i] = hn::Zero(d);
  const float* weights = taps.weights;
  for (const int64_t tap : planes.taps) {
    const VF weight = load(weights);
    weights += taps.ld;
    const float* HWY_RESTRICT at = x + tap;
    HWY_UNROLL(10) for (int i = 0; i < kRows * kColumns; ++i) {
      const VF seen = hn::LoadU(d, at + i / kColumns * row + i % kColumns * column);
      sums[i] = hn::MulAdd(weight, seen, sums[i]);
    }
  }
  const VF bias = taps.bias == nullptr ? hn::Zero(d) : load(taps.bias);
  HWY_UNROLL(10) for (int i = 0; i < kRows * kColumns; ++i) {
    VF sum = hn::Add(sums[i], bias);
    if (taps.bounded) sum = AtMost(d, AtLeast(d, sum, taps.low), taps.high);
    hn::StoreU(sum, d, y + (i / kColumns * planes.out.columns + i % kColumns) * kLanes);
  }
}

template <int kRows, int kStride>
void ConvolveRows(const ChannelPlanes& planes, const float* x, const ChannelTaps& taps, float* y) {
  const int64_t most = Even(planes.out.columns, kRows == 1 ? kMostColumns : kFewColumns);
  for (int64_t column = 0; column < planes.out.columns;) {
    const auto some = [&](auto columns) HWY_ATTR {
      ConvolveSome<kRows, decltype(columns)::value, kStride>(
          planes, x + column * planes.stride.columns * kLanes, taps, y + column * kLanes);
      column += columns;
    };
    const int64_t count = std::min(most, planes.out.columns - column);
    if constexpr (kRows == 1) {
      if (count == 8) some(std::integral_constant<int, 8>());
      if (count == 7) some(std::integral_constant<int, 7>());
      if (count == 6) some(std::integral_constant<int, 6>());
    }
    if (count == 5) some(std::integral_constant<int, 5>());
    if (count == 4) some(std::integral_constant<int, 4>());
    if (count == 3) some(std::integral_constant<int, 3>());
    if (count == 2) some(std::integral_constant<int, 2>());
    if (count == 1) some(std::integral_constant<int, 1>());
  }
}

template <int kStride>
void ConvolvePlanes(const ChannelPlanes& planes, const float* x, const ChannelTaps& taps,
                    float* y) {
  const int64_t stride = planes.stride.rows * planes.padded.columns * kLanes;
  for (int64_t row = 0; row < planes.out.rows;) {
    const float* from = x + row * stride;
    float* to = y + row * planes.out.columns * kLanes;
    if (planes.out.columns <= kFewColumns && row + 2 <= planes.out.rows) {
      ConvolveRows<2, kStride>(planes, from, taps, to);
      row += 2;
    } else {
      ConvolveRows<1, kStride>(planes, from, taps, to);
      row += 1;
    }
  }
}

void Convolve(const ChannelPlanes& planes, const float* x, const ChannelTaps& taps, float* y) {
  switch (planes.stride.columns) {
    case 1:
      return ConvolvePlanes<1>(planes, x, taps, y);
    case 2:
      return ConvolvePlanes<2>(planes, x, taps, y);
    default:
      return ConvolvePlanes<0>(planes, x, taps, y);
  }
}

}  // namespace

constexpr ChannelKernels kChannelKernels = {kLanes, Convolve};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

ChannelPlanes ChannelPlanesOf(const Strips& s, int64_t lanes) {
  ChannelPlanes planes = {.out = s.strip, .stride = s.stride};
  planes.padded = {
      (s.strip.rows - 1) * s.stride.rows + (s.kernel.rows - 1) * s.dilation.rows + 1,
      (s.strip.columns - 1) * s.stride.columns + (s.kernel.columns - 1) * s.dilation.columns + 1};
  for (int64_t i = 0; i < s.kernel.rows; ++i) {
    for (int64_t j = 0; j < s.kernel.columns; ++j) {
      planes.taps.push_back((i * s.dilation.rows * planes.padded.columns + j * s.dilation.columns) *
                            lanes);
    }
  }
  return planes;
}

const ChannelKernels& ChannelKernelsFor(Isa isa) {
  return REPRISE_CHOOSE_TARGET(isa, kChannelKernels);
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
