#include "runtime/device/cpu/conv/depthwise_nhwc.h"

#include <algorithm>
#include <type_traits>

#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/conv/depthwise_nhwc.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = HWY_LANES(float);
// Windows at a time: enough sums to wait for none.
constexpr int64_t kFewestColumns = 4, kMostColumns = 8;

// [begin, end): the taps, or the windows, that lie inside of the plane along a dim.
struct Inside {
  int64_t begin, end;
};
// Returns the indices i < count for which `first` + i * `step` lies in [0, size).
Inside PlacesInside(int64_t first, int64_t step, int64_t count, int64_t size) {
  const auto steps = [&](int64_t distance) { return step == 1 ? distance : distance / step; };
  const int64_t begin = first >= 0 ? 0 : steps(-first + step - 1);
  const int64_t end = size <= first ? 0 : steps(size - first - 1) + 1;
  return {std::min(begin, count), std::clamp(end, std::min(begin, count), count)};
}

// Neighbouring windows of a row.
struct Group {
  const float* x;        // the row that the first tap row sees, at its first column
  const float* weights;  // the weights of the first tap row
  int64_t tap_rows;
  int64_t first;  // the column that the first tap of the first window sees, perhaps outside
  float* y;
};

HWY_INLINE VF Finished(const LastPlanes& p, VF sum, VF bias) {
  const F32 d;
  sum = hn::Add(sum, bias);
  return p.bounded ? AtMost(d, AtLeast(d, sum, p.low), p.high) : sum;
}

// Returns where the vector of channels at `channel` begins: the last one is whole too, and part
// of it is computed twice. There are at least as many channels as a vector has lanes.
HWY_INLINE int64_t VectorAt(int64_t channel, int64_t channels) {
  return std::min(channel, channels - kLanes);
}

// Loads once: the compiler would otherwise load it for each of the products that read it.
HWY_INLINE VF LoadOnce(const float* from) {
  VF v = hn::LoadU(F32(), from);
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
  asm("" : "+v"(v.raw));
#endif
  return v;
}

// kColumns windows of kTaps columns, which move by kStride: an element is loaded once for all
// windows that see it. Where taps lie apart, so do the windows, as far. At most half of the taps
// lie outside of the plane at either end.
template <int kTaps, int kStride, int kColumns>
void ConvolveGroup(const LastPlanes& p, const Group& g) {
  constexpr int kSeen = (kColumns - 1) * kStride + kTaps;
  const F32 d;
  const Strips& s = p.strips;
  const int64_t channels = p.channels, row = s.dilation.rows * s.in.columns * channels;
  const int64_t apart = s.dilation.columns, column = apart * channels;
  const int64_t tap_rows = g.tap_rows;
  const Inside inside = PlacesInside(g.first, apart, kSeen, s.in.columns);
  const auto begin = static_cast<int>(inside.begin), end = static_cast<int>(inside.end);
  const float* const first = g.x + g.first * channels;
  float* const y = g.y;
  for (int64_t at_channel = 0; at_channel < channels; at_channel += kLanes) {
    const int64_t channel = VectorAt(at_channel, channels);
    VF sums[kColumns];
    HWY_UNROLL(8) for (int k = 0; k < kColumns; ++k) sums[k] = hn::Zero(d);
    const float* HWY_RESTRICT at = first + channel;
    const float* HWY_RESTRICT weights = g.weights + channel;
    for (int64_t i = 0; i < tap_rows; ++i, at += row, weights += kTaps * channels) {
      VF taps[kTaps];
      HWY_UNROLL(7) for (int j = 0; j < kTaps; ++j) taps[j] = LoadOnce(weights + j * channels);
      HWY_UNROLL(21) for (int j = 0; j < kSeen; ++j) {
        if (j < kTaps / 2 && j < begin) continue;
        if (j >= kSeen - kTaps / 2 && j >= end) continue;
        const VF seen = LoadOnce(at + j * column);
        HWY_UNROLL(8) for (int k = 0; k < kColumns; ++k) {
          const int tap = j - k * kStride;
          if (tap >= 0 && tap < kTaps) sums[k] = hn::MulAdd(taps[tap], seen, sums[k]);
        }
      }
    }
    const VF bias = p.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, p.bias + channel);
    HWY_UNROLL(8) for (int k = 0; k < kColumns; ++k) {
      hn::StoreU(Finished(p, sums[k], bias), d, y + k * column + channel);
    }
  }
}

// Convolves 3 x 3 taps and two rows of windows, where there are enough registers: elements that
// both see are loaded once. The first row of windows begins at row `first_row` of the plane.
template <int kColumns>
void ConvolveTwoRows(const LastPlanes& p, const Group& g, int64_t first_row) {
  constexpr int kTaps = 3, kRows = 2, kSeen = kColumns + kTaps - 1, kSeenRows = kRows + kTaps - 1;
  const F32 d;
  const Strips& s = p.strips;
  const int64_t channels = p.channels, row = s.in.columns * channels;
  const Inside inside = PlacesInside(g.first, 1, kSeen, s.in.columns);
  const auto begin = static_cast<int>(inside.begin), end = static_cast<int>(inside.end);
  const Inside rows = PlacesInside(first_row, 1, kSeenRows, s.in.rows);
  const auto first_inside = static_cast<int>(rows.begin), rows_end = static_cast<int>(rows.end);
  const float* const first = g.x + g.first * channels;
  float* const y = g.y;
  for (int64_t at_channel = 0; at_channel < channels; at_channel += kLanes) {
    const int64_t channel = VectorAt(at_channel, channels);
    VF sums[kRows * kColumns];
    HWY_UNROLL(16) for (int k = 0; k < kRows * kColumns; ++k) sums[k] = hn::Zero(d);
    VF taps[kTaps * kTaps];
    HWY_UNROLL(9) for (int j = 0; j < kTaps * kTaps; ++j) {
      taps[j] = LoadOnce(g.weights + j * channels + channel);
    }
    const float* HWY_RESTRICT at = first + channel;
    HWY_UNROLL(4) for (int i = 0; i < kSeenRows; ++i) {
      if (i == 0 && first_inside > 0) continue;
      if (i == kSeenRows - 1 && rows_end < kSeenRows) continue;
      HWY_UNROLL(10) for (int j = 0; j < kSeen; ++j) {
        if (j == 0 && begin > 0) continue;
        if (j == kSeen - 1 && end < kSeen) continue;
        const VF seen = LoadOnce(at + i * row + j * channels);
        HWY_UNROLL(16) for (int k = 0; k < kRows * kColumns; ++k) {
          const int tap_row = i - k / kColumns, tap = j - k % kColumns;
          if (tap_row < 0 || tap_row >= kTaps || tap < 0 || tap >= kTaps) continue;
          sums[k] = hn::MulAdd(taps[tap_row * kTaps + tap], seen, sums[k]);
        }
      }
    }
    const VF bias = p.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, p.bias + channel);
    HWY_UNROLL(16) for (int k = 0; k < kRows * kColumns; ++k) {
      hn::StoreU(Finished(p, sums[k], bias), d,
                 y + (k / kColumns * s.out.columns + k % kColumns) * channels + channel);
    }
  }
}

// kColumns windows, whatever they are.
template <int kColumns>
void ConvolveAny(const LastPlanes& p, const Group& g) {
  const F32 d;
  const Strips& s = p.strips;
  const int64_t channels = p.channels, row = s.dilation.rows * s.in.columns * channels;
  const int64_t stride = s.stride.columns, dilation = s.dilation.columns;
  const int64_t taps = s.kernel.columns, size = s.in.columns, window = stride * channels;
  // Taps that are inside for all of the windows; the other taps are inside for some of them.
  const Inside of_first = PlacesInside(g.first, dilation, taps, size);
  const Inside of_last = PlacesInside(g.first + (kColumns - 1) * stride, dilation, taps, size);
  const int64_t whole = of_first.begin, whole_end = std::max(of_last.end, whole);
  for (int64_t at_channel = 0; at_channel < channels; at_channel += kLanes) {
    const int64_t channel = VectorAt(at_channel, channels);
    VF sums[kColumns];
    HWY_UNROLL(8) for (int k = 0; k < kColumns; ++k) sums[k] = hn::Zero(d);
    const float* weights = g.weights + channel;
    const float* at_row = g.x + channel;
    for (int64_t i = 0; i < g.tap_rows; ++i, at_row += row, weights += taps * channels) {
      const auto add_some = [&](int64_t j) HWY_ATTR {
        const int64_t first = g.first + j * dilation;
        const Inside some = PlacesInside(first, stride, kColumns, size);
        const VF tap = hn::LoadU(d, weights + j * channels);
        const float* const at = at_row + first * channels;
        HWY_UNROLL(8) for (int k = 0; k < kColumns; ++k) {
          if (k < some.begin || k >= some.end) continue;
          sums[k] = hn::MulAdd(tap, hn::LoadU(d, at + k * window), sums[k]);
        }
      };
      for (int64_t j = of_last.begin; j < whole; ++j) add_some(j);
      const float* HWY_RESTRICT at = at_row + (g.first + whole * dilation) * channels;
      const float* HWY_RESTRICT weight = weights + whole * channels;
      for (int64_t j = whole; j < whole_end; ++j, at += dilation * channels, weight += channels) {
        const VF tap = hn::LoadU(d, weight);
        HWY_UNROLL(8) for (int k = 0; k < kColumns; ++k) {
          sums[k] = hn::MulAdd(tap, hn::LoadU(d, at + k * window), sums[k]);
        }
      }
      for (int64_t j = whole_end; j < of_first.end; ++j) add_some(j);
    }
    const VF bias = p.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, p.bias + channel);
    HWY_UNROLL(8) for (int k = 0; k < kColumns; ++k) {
      hn::StoreU(Finished(p, sums[k], bias), d, g.y + k * channels + channel);
    }
  }
}

// Convolves a row of windows of fewer channels than a vector has, one after the other.
void ConvolveEach(const LastPlanes& p, const Group& g) {
  const F32 d;
  const Strips& s = p.strips;
  const int64_t channels = p.channels, row = s.dilation.rows * s.in.columns * channels;
  const auto live = hn::FirstN(d, static_cast<size_t>(channels));
  const VF bias = p.bias == nullptr ? hn::Zero(d) : hn::MaskedLoad(live, d, p.bias);
  for (int64_t k = 0; k < s.out.columns; ++k) {
    const int64_t first = g.first + k * s.stride.columns;
    const Inside taps = PlacesInside(first, s.dilation.columns, s.kernel.columns, s.in.columns);
    VF sum = hn::Zero(d);
    for (int64_t i = 0; i < g.tap_rows; ++i) {
      for (int64_t j = taps.begin; j < taps.end; ++j) {
        const float* const seen = g.x + i * row + (first + j * s.dilation.columns) * channels;
        const float* const weight = g.weights + (i * s.kernel.columns + j) * channels;
        sum = hn::MulAdd(hn::MaskedLoad(live, d, weight), hn::MaskedLoad(live, d, seen), sum);
      }
    }
    hn::BlendedStore(Finished(p, sum, bias), live, d, g.y + k * channels);
  }
}

using ConvolveGroups = void (*)(const LastPlanes& p, const Group& g);

template <int kTaps, int kStride>
ConvolveGroups GroupsOf(int64_t columns) {
  switch (columns) {
    case 4:
      return ConvolveGroup<kTaps, kStride, 4>;
    case 5:
      return ConvolveGroup<kTaps, kStride, 5>;
    case 6:
      return ConvolveGroup<kTaps, kStride, 6>;
    case 7:
      return ConvolveGroup<kTaps, kStride, 7>;
    default:
      return ConvolveGroup<kTaps, kStride, 8>;
  }
}

// Returns whether there are groups for these windows: they move by one or two columns, taps are
// one apart, and few taps lie in the padding.
bool HasGroups(const Strips& s) {
  const int64_t apart = s.dilation.columns, stride = s.stride.columns, taps = s.kernel.columns;
  const int64_t behind =
      (s.out.columns - 1) * stride - s.pad.columns + (taps - 1) * apart + 1 - s.in.columns;
  return s.out.columns / apart >= kFewestColumns && stride * apart <= std::max<int64_t>(2, apart) &&
         std::max(behind, s.pad.columns) <= taps / 2 * apart &&
         (taps == 3 || taps == 5 || taps == 7);
}

ConvolveGroups GroupsFor(const Strips& s, int64_t columns) {
  const auto with = [&](auto taps) -> ConvolveGroups {
    return s.stride.columns == 1 ? GroupsOf<taps, 1>(columns) : GroupsOf<taps, 2>(columns);
  };
  switch (s.kernel.columns) {
    case 3:
      return with(std::integral_constant<int, 3>());
    case 5:
      return with(std::integral_constant<int, 5>());
    default:
      return with(std::integral_constant<int, 7>());
  }
}

using ConvolveRows = void (*)(const LastPlanes& p, const Group& g, int64_t first_row);

// The functions for two rows, of up to kMostPairColumns windows each; null: there is none.
constexpr int64_t kMostPairColumns = 7;
ConvolveRows PairsFor(const Strips& s, int64_t columns) {
  const bool near = s.kernel.rows == 3 && s.kernel.columns == 3 && s.stride.rows == 1 &&
                    s.stride.columns == 1 && s.dilation.rows == 1 &&
                    std::max(s.pad.rows, s.out.rows - s.pad.rows + 2 - s.in.rows) <= 1;
  if (kLanes < 16 || !near || s.dilation.columns != 1 || !HasGroups(s)) return nullptr;
  switch (columns) {
    case 4:
      return ConvolveTwoRows<4>;
    case 5:
      return ConvolveTwoRows<5>;
    case 6:
      return ConvolveTwoRows<6>;
    default:
      return ConvolveTwoRows<7>;
  }
}

// Calls `convolve` for groups of `columns` of `count` windows. The last group is whole too, and
// part of it was computed before.
template <class F>
void ForEachGroup(int64_t count, int64_t columns, const F& convolve) {
  for (int64_t window = 0; window < count; window += columns) {
    convolve(std::min(window, count - columns));
  }
}

// A plane and its results, from row `row` of the windows on.
struct Plane {
  const LastPlanes& p;
  const float* x;
  int64_t row;
  float* y;

  int64_t FirstOf(int64_t at) const { return at * p.strips.stride.rows - p.strips.pad.rows; }
  Inside TapsOf(int64_t at) const {
    return PlacesInside(FirstOf(at), p.strips.dilation.rows, p.strips.kernel.rows,
                        p.strips.in.rows);
  }
  Group GroupAt(int64_t at, const Inside& taps, int64_t window) const {
    const Strips& s = p.strips;
    const int64_t from = FirstOf(at) + taps.begin * s.dilation.rows;
    return {.x = x + from * s.in.columns * p.channels,
            .weights = p.weights + taps.begin * s.kernel.columns * p.channels,
            .tap_rows = taps.end - taps.begin,
            .first = window * s.stride.columns - s.pad.columns,
            .y = y + ((at - row) * s.out.columns + window) * p.channels};
  }
};

// Row `row` of windows that have no groups of their own.
void ConvolveRow(const Plane& plane, int64_t row) {
  const LastPlanes& p = plane.p;
  const Inside taps = plane.TapsOf(row);
  const auto in_groups = [&](auto columns) {
    ForEachGroup(p.strips.out.columns, columns, [&](int64_t window) {
      ConvolveAny<columns>(p, plane.GroupAt(row, taps, window));
    });
  };
  const int64_t columns = p.strips.out.columns;
  if (columns >= 6) {
    in_groups(std::integral_constant<int, 6>());
  } else if (columns >= 3) {
    in_groups(std::integral_constant<int, 3>());
  } else {
    in_groups(std::integral_constant<int, 1>());
  }
}

// Row `row` of windows that have groups: of taps that lie apart, those that see the same columns.
void ConvolveRowInGroups(const Plane& plane, int64_t row) {
  const Strips& s = plane.p.strips;
  const Inside taps = plane.TapsOf(row);
  const int64_t apart = s.dilation.columns;
  for (int64_t first = 0; first < apart; ++first) {
    const int64_t count = (s.out.columns - first + apart - 1) / apart;
    const int64_t columns = std::max(kFewestColumns, Even(count, kMostColumns));
    const ConvolveGroups convolve = GroupsFor(s, columns);
    ForEachGroup(count, columns, [&](int64_t at) {
      convolve(plane.p, plane.GroupAt(row, taps, first + at * apart));
    });
  }
}

void Convolve(const LastPlanes& p, const float* x, ItemRange rows, float* y) {
  const Strips& s = p.strips;
  const Plane plane = {p, x, rows.begin, y};
  const int64_t pair = std::max(kFewestColumns, Even(s.out.columns, kMostPairColumns));
  const ConvolveRows pairs = PairsFor(s, pair);
  const bool few_channels = p.channels < kLanes, in_groups = HasGroups(s);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    if (few_channels) {
      ConvolveEach(p, plane.GroupAt(row, plane.TapsOf(row), 0));
    } else if (pairs != nullptr && row + 1 < rows.end) {
      ForEachGroup(s.out.columns, pair, [&](int64_t window) {
        pairs(p, plane.GroupAt(row, {0, s.kernel.rows}, window), plane.FirstOf(row));
      });
      ++row;
    } else if (in_groups) {
      ConvolveRowInGroups(plane, row);
    } else {
      ConvolveRow(plane, row);
    }
  }
}

}  // namespace

constexpr LastPlaneKernels kLastPlaneKernels = {Convolve};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const LastPlaneKernels& LastPlaneKernelsFor(Isa isa) {
  return REPRISE_CHOOSE_TARGET(isa, kLastPlaneKernels);
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
