#include "runtime/device/cpu/conv/conv_few_inputs.h"

#include <algorithm>

#include "runtime/device/cpu/conv/window_tiles.h"
#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/conv/conv_few_inputs.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = HWY_LANES(float);
// A tile is a few vectors of maps for a few windows, all of whose sums stay in registers.
#if HWY_TARGET == HWY_AVX3
constexpr int kMostVectors = 4, kMostWindows = 8;
#else
constexpr int kMostVectors = 2, kMostWindows = 6;
#endif
constexpr int kFewestWindows = 4;

// kWindows windows from `window` on, kVectors vectors of maps from `map` on.
template <int kVectors, int kWindows, class Load, class Store>
HWY_INLINE void Tile(const FewChannels& row, int64_t window, int64_t map, Load load, Store store) {
  const F32 d;
  VF sums[kVectors * kWindows];
  HWY_UNROLL(32) for (int i = 0; i < kVectors * kWindows; ++i) sums[i] = hn::Zero(d);
  // The last vector is whole too: part of it is computed twice.
  int64_t maps[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    maps[v] = std::min(map + v * kLanes, std::max<int64_t>(row.maps - kLanes, 0));
  }
  const float* const x = row.x + window * row.stride;
  const float* HWY_RESTRICT weights = row.weights;
  for (int64_t tap = 0; tap < row.num_taps; ++tap, weights += row.maps) {
    VF of_tap[kVectors];
    HWY_UNROLL(4) for (int v = 0; v < kVectors; ++v) of_tap[v] = load(weights + maps[v]);
    const float* HWY_RESTRICT at = x + row.taps[tap];
    HWY_UNROLL(8) for (int k = 0; k < kWindows; ++k) {
      const VF seen = hn::Set(d, at[k * row.stride]);
      HWY_UNROLL(4) for (int v = 0; v < kVectors; ++v) {
        sums[k * kVectors + v] = hn::MulAdd(of_tap[v], seen, sums[k * kVectors + v]);
      }
    }
  }
  HWY_UNROLL(4) for (int v = 0; v < kVectors; ++v) {
    const VF bias = row.bias == nullptr ? hn::Zero(d) : load(row.bias + maps[v]);
    HWY_UNROLL(8) for (int k = 0; k < kWindows; ++k) {
      VF sum = hn::Add(sums[k * kVectors + v], bias);
      if (row.bounded) sum = AtMost(d, AtLeast(d, sum, row.low), row.high);
      store(sum, row.y + (window + k) * row.maps + maps[v]);
    }
  }
}

// Computes all windows of a row: the last tile is whole too, and part of it was computed before.
template <int kVectors, int kWindows, class Load, class Store>
void Tiles(const FewChannels& row, int64_t map, Load load, Store store) {
  for (int64_t window = 0; window < row.windows; window += kWindows) {
    Tile<kVectors, kWindows>(row, std::min(window, row.windows - kWindows), map, load, store);
  }
}

template <int kVectors, class Load, class Store>
void AllWindows(const FewChannels& row, int64_t map, Load load, Store store) {
  constexpr int kMost = kVectors == 4 ? 6 : kMostWindows;
  if (row.windows < kFewestWindows) return Tiles<kVectors, 1>(row, map, load, store);
  switch (std::max<int64_t>(kFewestWindows, Even(row.windows, kMost))) {
    case 4:
      return Tiles<kVectors, 4>(row, map, load, store);
    case 5:
      return Tiles<kVectors, 5>(row, map, load, store);
    case 6:
      return Tiles<kVectors, 6>(row, map, load, store);
    case 7:
      return Tiles<kVectors, std::min(kMost, 7)>(row, map, load, store);
    default:
      return Tiles<kVectors, kMost>(row, map, load, store);
  }
}

template <int kVectors>
void WholeVectors(const FewChannels& row, int64_t map) {
  const F32 d;
  AllWindows<kVectors>(
      row, map, [&](const float* from) HWY_ATTR { return hn::LoadU(d, from); },
      [&](VF sum, float* to) HWY_ATTR { hn::StoreU(sum, d, to); });
}

void Convolve(const FewChannels& row) {
  const F32 d;
  if (row.maps < kLanes) {
    const auto live = hn::FirstN(d, static_cast<size_t>(row.maps));
    return AllWindows<1>(
        row, 0, [&](const float* from) HWY_ATTR { return hn::MaskedLoad(live, d, from); },
        [&](VF sum, float* to) HWY_ATTR { hn::BlendedStore(sum, live, d, to); });
  }
  const int64_t vectors = (row.maps + kLanes - 1) / kLanes;
  const int64_t at_once = Even(vectors, kMostVectors);
  for (int64_t vector = 0; vector < vectors; vector += at_once) {
    const int64_t count = std::min(at_once, vectors - vector);
    const int64_t map = vector * kLanes;
    if (count == 1) WholeVectors<1>(row, map);
    if (count == 2) WholeVectors<2>(row, map);
    if constexpr (kMostVectors > 2) {
      if (count == 3) WholeVectors<3>(row, map);
      if (count == 4) WholeVectors<4>(row, map);
    }
  }
}

}  // namespace

constexpr FewChannelKernels kFewChannelKernels = {Convolve};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const FewChannelKernels& FewChannelKernelsFor(Isa isa) {
  return REPRISE_CHOOSE_TARGET(isa, kFewChannelKernels);
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
