#include "runtime/device/cpu/last_planes.h"

#include <algorithm>
#include <type_traits>

#include "runtime/device/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/last_planes.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = HWY_LANES(float);
// Windows at a time: enough sums to wait for none.
constexpr int64_t kFewestColumns = 4, kMostColumns = 8;

// [begin, end): taps of a window along one dim, or elements, that lie inside of the plane.
struct Inside {
  int64_t begin, end;
};
Inside TapsInside(int64_t first, int64_t dilation, int64_t taps, int64_t size) {
  const int64_t begin = first >= 0 ? 0 : (-first + dilation - 1) / dilation;
  const int64_t end = size <= first ? 0 : (size - first - 1) / dilation + 1;
  return {std::min(begin, taps), std::clamp(end, std::min(begin, taps), taps)};
}

// Neighbouring windows of a row.
struct Group {
  const float* x;        // the row that the first tap row sees, at its first column
  const float* weights;  // of that tap row
  int64_t tap_rows;
  int64_t first;  // the column that the first tap of the first window sees, perhaps outside
  float* y;
};

HWY_INLINE VF Finished(const LastPlanes& p, VF sum, VF bias) {
  const F32 d;
  sum = hn::Add(sum, bias);
  return p.bounded ? AtMost(d, AtLeast(d, sum, p.low), p.high) : sum;
}

// Loaded once: the compiler would rather load what several products read for each of them.
HWY_INLINE VF LoadOnce(const float* from) {
  VF v = hn::LoadU(F32(), from);
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
  asm("" : "+v"(v.raw));
#endif
  return v;
}

// kColumns windows of kTaps neighbouring columns, which move by kStride: an element is loaded once
// for all windows that see it. At most half of the taps lie outside of the plane at either end.
// Channels up to the last whole vector.
template <int kTaps, int kStride, int kColumns>
void ConvolveGroup(const LastPlanes& p, const Group& g) {
  constexpr int kSeen = (kColumns - 1) * kStride + kTaps;
  const F32 d;
  const Strips& s = p.strips;
  const int64_t channels = p.channels, row = s.dilation.rows * s.in.columns * channels;
  const int64_t tap_rows = g.tap_rows;
  const Inside inside = TapsInside(g.first, 1, kSeen, s.in.columns);
  const auto begin = static_cast<int>(inside.begin), end = static_cast<int>(inside.end);
  const float* const first = g.x + g.first * channels;
  float* const y = g.y;
  for (int64_t channel = 0; channel + kLanes <= channels; channel += kLanes) {
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
        const VF seen = LoadOnce(at + j * channels);
        HWY_UNROLL(8) for (int k = 0; k < kColumns; ++k) {
          const int tap = j - k * kStride;
          if (tap >= 0 && tap < kTaps) sums[k] = hn::MulAdd(taps[tap], seen, sums[k]);
        }
      }
    }
    const VF bias = p.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, p.bias + channel);
    HWY_UNROLL(8) for (int k = 0; k < kColumns; ++k) {
      hn::StoreU(Finished(p, sums[k], bias), d, y + k * channels + channel);
    }
  }
}

// The same of 3 x 3 taps and two rows of windows, where that many registers are: what both see is
// loaded once. The first of them begins at row `first_row` of the plane.
template <int kColumns>
void ConvolveTwoRows(const LastPlanes& p, const Group& g, int64_t first_row) {
  constexpr int kTaps = 3, kRows = 2, kSeen = kColumns + kTaps - 1, kSeenRows = kRows + kTaps - 1;
  const F32 d;
  const Strips& s = p.strips;
  const int64_t channels = p.channels, row = s.in.columns * channels;
  const Inside inside = TapsInside(g.first, 1, kSeen, s.in.columns);
  const auto begin = static_cast<int>(inside.begin), end = static_cast<int>(inside.end);
  const Inside rows = TapsInside(first_row, 1, kSeenRows, s.in.rows);
  const auto first_inside = static_cast<int>(rows.begin), rows_end = static_cast<int>(rows.end);
  const float* const first = g.x + g.first * channels;
  float* const y = g.y;
  for (int64_t channel = 0; channel + kLanes <= channels; channel += kLanes) {
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

// kColumns windows all of whose taps lie inside of the plane, whatever they are.
template <int kColumns>
void ConvolveInside(const LastPlanes& p, const Group& g) {
  const F32 d;
  const Strips& s = p.strips;
  const int64_t channels = p.channels, row = s.dilation.rows * s.in.columns * channels;
  const int64_t column = s.dilation.columns * channels, window = s.stride.columns * channels;
  for (int64_t channel = 0; channel + kLanes <= channels; channel += kLanes) {
    VF sums[kColumns];
    HWY_UNROLL(8) for (int k = 0; k < kColumns; ++k) sums[k] = hn::Zero(d);
    const float* HWY_RESTRICT weights = g.weights + channel;
    for (int64_t i = 0; i < g.tap_rows; ++i) {
      const float* HWY_RESTRICT at = g.x + i * row + g.first * channels + channel;
      for (int64_t j = 0; j < s.kernel.columns; ++j, at += column, weights += channels) {
        const VF tap = hn::LoadU(d, weights);
        HWY_UNROLL(8) for (int k = 0; k < kColumns; ++k) {
          sums[k] = hn::MulAdd(tap, hn::LoadU(d, at + k * window), sums[k]);
        }
      }
    }
    const VF bias = p.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, p.bias + channel);
    HWY_UNROLL(8) for (int k = 0; k < kColumns; ++k) {
      hn::StoreU(Finished(p, sums[k], bias), d, g.y + k * channels + channel);
    }
  }
}

// `windows` of a row one after the other, whatever they are, channels from `first_channel` on.
void ConvolveEach(const LastPlanes& p, const Group& g, int64_t windows, int64_t first_channel) {
  const F32 d;
  const Strips& s = p.strips;
  const int64_t channels = p.channels, row = s.dilation.rows * s.in.columns * channels;
  for (int64_t k = 0; k < windows; ++k) {
    const int64_t first = g.first + k * s.stride.columns;
    const Inside taps = TapsInside(first, s.dilation.columns, s.kernel.columns, s.in.columns);
    for (int64_t channel = first_channel; channel < channels; channel += kLanes) {
      const auto live = hn::FirstN(d, static_cast<size_t>(std::min(kLanes, channels - channel)));
      VF sum = hn::Zero(d);
      for (int64_t i = 0; i < g.tap_rows; ++i) {
        for (int64_t j = taps.begin; j < taps.end; ++j) {
          const float* const seen =
              g.x + i * row + (first + j * s.dilation.columns) * channels + channel;
          const float* const weight = g.weights + (i * s.kernel.columns + j) * channels + channel;
          sum = hn::MulAdd(hn::MaskedLoad(live, d, weight), hn::MaskedLoad(live, d, seen), sum);
        }
      }
      const VF bias = p.bias == nullptr ? hn::Zero(d) : hn::MaskedLoad(live, d, p.bias + channel);
      hn::BlendedStore(Finished(p, sum, bias), live, d, g.y + k * channels + channel);
    }
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

// Null: there is none for these windows.
ConvolveGroups GroupsFor(const Strips& s, int64_t columns) {
  const int64_t behind =
      (s.out.columns - 1) * s.stride.columns - s.pad.columns + s.kernel.columns - s.in.columns;
  if (s.dilation.columns != 1 || s.out.columns < kFewestColumns ||
      std::max(behind, s.pad.columns) > s.kernel.columns / 2) {
    return nullptr;
  }
  const auto with = [&](auto taps) -> ConvolveGroups {
    if (s.stride.columns == 1) return GroupsOf<taps, 1>(columns);
    return s.stride.columns == 2 ? GroupsOf<taps, 2>(columns) : nullptr;
  };
  switch (s.kernel.columns) {
    case 3:
      return with(std::integral_constant<int, 3>());
    case 5:
      return with(std::integral_constant<int, 5>());
    case 7:
      return with(std::integral_constant<int, 7>());
    default:
      return nullptr;
  }
}

using ConvolveRows = void (*)(const LastPlanes& p, const Group& g, int64_t first_row);

// The groups of two rows, of up to kMostPairColumns windows each; null: there are none.
constexpr int64_t kMostPairColumns = 7;
ConvolveRows PairsFor(const Strips& s, int64_t columns) {
  const bool near = s.kernel.rows == 3 && s.kernel.columns == 3 && s.stride.rows == 1 &&
                    s.stride.columns == 1 && s.dilation.rows == 1 &&
                    std::max(s.pad.rows, s.out.rows - s.pad.rows + 2 - s.in.rows) <= 1;
  if (kLanes < 16 || !near || GroupsFor(s, columns) == nullptr) return nullptr;
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

// Windows of a row all of whose taps lie inside of the plane.
ItemRange WindowsInside(const Strips& s) {
  const int64_t stride = s.stride.columns;
  const int64_t begin = std::min((s.pad.columns + stride - 1) / stride, s.out.columns);
  const int64_t room =
      s.in.columns + s.pad.columns - (s.kernel.columns - 1) * s.dilation.columns - 1;
  const int64_t end = room < 0 ? 0 : std::min(room / stride + 1, s.out.columns);
  return {begin, std::max(begin, end)};
}

// Calls `convolve` for groups of `columns` of `windows`. The last one is whole too: some of it was
// computed before.
template <class F>
void ForEachGroup(ItemRange windows, int64_t columns, const F& convolve) {
  for (int64_t window = windows.begin; window < windows.end; window += columns) {
    convolve(std::min(window, windows.end - columns));
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
    return TapsInside(FirstOf(at), p.strips.dilation.rows, p.strips.kernel.rows, p.strips.in.rows);
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
  constexpr int64_t kColumns = 6;
  const LastPlanes& p = plane.p;
  const Inside taps = plane.TapsOf(row);
  ItemRange inside = WindowsInside(p.strips);
  if (inside.end - inside.begin < kColumns) inside = {0, 0};
  ForEachGroup(inside, kColumns, [&](int64_t window) {
    ConvolveInside<kColumns>(p, plane.GroupAt(row, taps, window));
  });
  const int64_t whole = p.channels / kLanes * kLanes;
  const int64_t columns = p.strips.out.columns;
  ConvolveEach(p, plane.GroupAt(row, taps, 0), inside.begin, 0);
  ConvolveEach(p, plane.GroupAt(row, taps, inside.end), columns - inside.end, 0);
  ConvolveEach(p, plane.GroupAt(row, taps, inside.begin), inside.end - inside.begin, whole);
}

void Convolve(const LastPlanes& p, const float* x, ItemRange rows, float* y) {
  const Strips& s = p.strips;
  const Plane plane = {p, x, rows.begin, y};
  const int64_t columns = std::max(kFewestColumns, Even(s.out.columns, kMostColumns));
  const int64_t pair = std::max(kFewestColumns, Even(s.out.columns, kMostPairColumns));
  const ConvolveGroups groups = GroupsFor(s, columns);
  const ConvolveRows pairs = PairsFor(s, pair);
  const ItemRange all = {0, s.out.columns};
  const int64_t whole = p.channels / kLanes * kLanes;
  for (int64_t row = rows.begin, next; row < rows.end; row = next) {
    next = std::min(rows.end, row + (pairs != nullptr ? 2 : 1));
    if (groups == nullptr) {
      ConvolveRow(plane, row);
      continue;
    }
    if (next == row + 2) {
      ForEachGroup(all, pair, [&](int64_t window) {
        pairs(p, plane.GroupAt(row, {0, s.kernel.rows}, window), plane.FirstOf(row));
      });
    } else {
      ForEachGroup(all, columns, [&](int64_t window) {
        groups(p, plane.GroupAt(row, plane.TapsOf(row), window));
      });
    }
    for (int64_t each = row; each < next && whole < p.channels; ++each) {
      ConvolveEach(p, plane.GroupAt(each, plane.TapsOf(each), 0), s.out.columns, whole);
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
