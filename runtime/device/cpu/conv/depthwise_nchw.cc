#include "runtime/device/cpu/conv/depthwise_nchw.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/conv/depthwise_nchw.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = HWY_LANES(float);
using Mask = hn::Mask<F32>;

// Rows of windows at a time: enough sums to wait for none.
constexpr int64_t kRows = 4;
// The rows over which a column of vectors goes before the next one begins: the elements under them
// stay in the L1 cache.
constexpr int64_t kBand = 16;

// Masks the lanes from column `at` on that lie within [0, columns): a column in front of 0 is large
// as an unsigned number.
HWY_INLINE Mask InsideOf(F32 d, int64_t at, int64_t columns) {
  const hn::RebindToUnsigned<F32> du;
  const auto column = hn::Add(hn::Iota(du, 0), hn::Set(du, static_cast<uint32_t>(at)));
  return hn::RebindMask(d, hn::Lt(column, hn::Set(du, static_cast<uint32_t>(columns))));
}

// Loads elements, zero in the other lanes.
HWY_INLINE VF LoadInside(F32 d, const float* from, Mask inside) {
#if HWY_TARGET == HWY_SCALAR
  // On the scalar target a masked load reads even the lanes that it masks.
  return inside.bits == 0 ? hn::Zero(d) : hn::LoadU(d, from);
#else
  return hn::MaskedLoad(inside, d, from);
#endif
}

// The elements of one row of the plane that a vector of windows has under each column of the
// kernel. A stride of two takes every other element of pairs of vectors.
template <int kSize, int kStride, bool kWhole, class Window>
struct Columns {
  static constexpr int kLoads = kStride == 1 ? kSize : 2 * ((kSize + 1) / 2);

  Columns(F32 d, int64_t first, int64_t columns) {
    if constexpr (!kWhole) {
      for (int i = 0; i < kLoads; ++i) inside[i] = InsideOf(d, first + ColumnOf(i), columns);
    }
  }
  // From the first window's first column.
  static constexpr int64_t ColumnOf(int load) {
    return kStride == 1 || HWY_TARGET == HWY_SCALAR ? load : load / 2 * 2 + load % 2 * kLanes;
  }
  // The number of floats that the loads span, from the first column on.
  static constexpr int64_t kReach =
      kStride == 1 || HWY_TARGET == HWY_SCALAR ? kLoads - 1 + kLanes : kLoads - 2 + 2 * kLanes;

  HWY_INLINE VF At(F32 d, const float* from, int load) const {
    if constexpr (kWhole) return hn::LoadU(d, from + ColumnOf(load));
    const VF v = LoadInside(d, from + ColumnOf(load), inside[load]);
    return Window::kPadding == 0 ? v
                                 : hn::IfThenElse(inside[load], v, hn::Set(d, Window::kPadding));
  }
  HWY_INLINE void Load(F32 d, const float* from, VF (&taps)[kSize]) const {
#if HWY_TARGET != HWY_SCALAR
    if constexpr (kStride == 2) {
      HWY_UNROLL(4) for (int pair = 0; pair < kLoads / 2; ++pair) {
        const VF low = At(d, from, 2 * pair), high = At(d, from, 2 * pair + 1);
        taps[2 * pair] = hn::ConcatEven(d, high, low);
        if (2 * pair + 1 < kSize) taps[2 * pair + 1] = hn::ConcatOdd(d, high, low);
      }
      return;
    }
#endif
    HWY_UNROLL(8) for (int i = 0; i < kSize; ++i) taps[i] = At(d, from, i);
  }

  Mask inside[kWhole ? 1 : kLoads];
};

// The kinds of windows: each has a start, a step for each tap, and a finish.
template <int kSize>
struct Convolution {
  static constexpr float kPadding = 0;
  // This many weights fit in registers of their own: loading them at each use would wait for loads.
  static constexpr bool kKeep = kSize == 3;

  Convolution(F32 d, const float* weights, const StripBounds& bounds)
      : weights(weights), bounds(bounds) {
    if constexpr (kKeep) {
      HWY_UNROLL(16) for (int i = 0; i < kSize * kSize; ++i) kept[i] = hn::Set(d, weights[i]);
    }
  }
  static constexpr bool kByRows = false;
  HWY_INLINE VF Start(F32 d) const { return hn::Zero(d); }
  HWY_INLINE VF Step(F32 d, VF sum, int row, int column, VF x) const {
    const int tap = row * kSize + column;
    if constexpr (kKeep) return hn::MulAdd(kept[tap], x, sum);
    return hn::MulAdd(hn::Set(d, weights[tap]), x, sum);
  }
  HWY_INLINE VF Finish(F32 d, VF sum, int64_t, int64_t) const {
    sum = hn::Add(sum, hn::Set(d, bounds.bias));
    return bounds.bounded ? AtMost(d, AtLeast(d, sum, bounds.low), bounds.high) : sum;
  }

  const float* HWY_RESTRICT weights;
  StripBounds bounds;
  VF kept[kKeep ? kSize * kSize : 1];
};

// Others are folded: the elements of a row of the window, then its rows, which neighbouring windows
// share.
struct LargestElement {
  static constexpr float kPadding = -HUGE_VALF;
  static constexpr bool kByRows = true;
  HWY_INLINE VF Join(VF best, VF x) const {
#if HWY_TARGET == HWY_SCALAR
    return hn::IfThenElse(hn::Or(hn::Gt(x, best), hn::IsNaN(x)), x, best);
#else
    // If one of two operands is NaN, x86's max returns the second.
    return hn::IfThenElse(hn::IsNaN(best), best, hn::Max(best, x));
#endif
  }
  HWY_INLINE VF Finish(F32, VF best, int64_t, int64_t) const { return best; }
};

struct AverageElement {
  static constexpr float kPadding = 0;
  static constexpr bool kByRows = true;
  HWY_INLINE VF Join(VF sum, VF x) const { return hn::Add(sum, x); }
  HWY_INLINE VF Finish(F32 d, VF sum, int64_t row, int64_t column) const {
    return hn::Div(sum, hn::Mul(hn::Set(d, row_counts[row]), hn::LoadU(d, column_counts + column)));
  }

  const float* HWY_RESTRICT row_counts;
  const float* HWY_RESTRICT column_counts;
};

// Computes kCount rows of windows from `row` on, a vector of them from `column` on. `outside`
// stands for a row of the padding.
template <int kSize, int kStride, int kCount, bool kWhole, class Window>
HWY_INLINE void Slide(const Strips& w, const float* x, int64_t row, int64_t column,
                      const Columns<kSize, kStride, kWhole, Window>& columns, const Window& window,
                      const float* outside, float* y) {
  const F32 d;
  VF values[kCount];
  if constexpr (!Window::kByRows) {
    HWY_UNROLL(4) for (int r = 0; r < kCount; ++r) values[r] = window.Start(d);
  }
  const int64_t top = row * kStride - w.pad.rows;
  const float* from = x + top * w.in.columns + column * kStride - w.pad.columns;
  // An element is loaded for all windows that see it.
  HWY_UNROLL(16) for (int i = 0; i < (kCount - 1) * kStride + kSize; ++i) {
    const bool inside = static_cast<uint64_t>(top + i) < static_cast<uint64_t>(w.in.rows);
    VF taps[kSize];
    columns.Load(d, inside ? from : outside, taps);
    // Planes come from memory, and their columns are no stream that a hardware prefetcher follows.
    __builtin_prefetch(from + kBand * kStride * w.in.columns);
    if constexpr (Window::kByRows) {
      HWY_UNROLL(8) for (int k = 1; k < kSize; ++k) taps[0] = window.Join(taps[0], taps[k]);
    }
    HWY_UNROLL(4) for (int r = 0; r < kCount; ++r) {
      const int tap_row = i - r * kStride;
      if (tap_row < 0 || tap_row >= kSize) continue;
      if constexpr (Window::kByRows) {
        values[r] = tap_row == 0 ? taps[0] : window.Join(values[r], taps[0]);
      } else {
        HWY_UNROLL(8) for (int k = 0; k < kSize; ++k) {
          values[r] = window.Step(d, values[r], tap_row, k, taps[k]);
        }
      }
    }
    from += w.in.columns;
  }
  const int64_t live = w.out.columns - column;
  float* to = y + row * w.out.columns + column;
  HWY_UNROLL(4) for (int r = 0; r < kCount; ++r) {
    const VF value = window.Finish(d, values[r], row + r, column);
    if (live >= kLanes) {
      hn::StoreU(value, d, to);
    } else {
      StorePart(value, d, to, live);
    }
    to += w.out.columns;
  }
}

template <int kSize, int kStride, bool kWhole, class Window>
HWY_INLINE void SlideDown(const Strips& w, const PlaneRows& rows, const float* x, int64_t column,
                          const Window& window, float* y) {
  const F32 d;
  using ColumnsOf = Columns<kSize, kStride, kWhole, Window>;
  const ColumnsOf columns(d, column * kStride - w.pad.columns, w.in.columns);
  float outside[ColumnsOf::kReach];
  std::fill_n(outside, ColumnsOf::kReach, Window::kPadding);
  if (rows.end - rows.begin < kRows) {
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      Slide<kSize, kStride, 1, kWhole>(w, x, row, column, columns, window, outside, y);
    }
    return;
  }
  // Where the rows do not divide, the last ones repeat some, which changes nothing.
  for (int64_t row = rows.begin; row < rows.end; row += kRows) {
    Slide<kSize, kStride, kRows, kWhole>(w, x, std::min(row, rows.end - kRows), column, columns,
                                         window, outside, y);
  }
}

template <int kSize, int kStride, class Window>
HWY_INLINE void SlideOver(const Strips& w, const PlaneRows& rows, const float* x,
                          const Window& window, float* y) {
  for (int64_t begin = rows.begin, end; begin < rows.end; begin = end) {
    // No band is left with fewer rows than are computed at a time, unless all are.
    end = rows.end - begin < kBand + kRows ? rows.end : begin + kBand;
    for (int64_t column = 0; column < w.out.columns; column += kLanes) {
      const int64_t first = column * kStride - w.pad.columns;
      if (first >= 0 && first + Columns<kSize, kStride, true, Window>::kReach <= w.in.columns) {
        SlideDown<kSize, kStride, true>(w, {begin, end}, x, column, window, y);
      } else {
        SlideDown<kSize, kStride, false>(w, {begin, end}, x, column, window, y);
      }
    }
  }
}

template <int kSize, int kStride>
void Convolve(const Strips& w, const PlaneRows& rows, const float* x, const float* weights,
              const StripBounds& bounds, float* y) {
  const F32 d;
  SlideOver<kSize, kStride>(w, rows, x, Convolution<kSize>(d, weights, bounds), y);
}

// Convolves with one tap and no padding: a factor, a bias.
void Scale(const Strips& w, const PlaneRows& rows, const float* x, const float* weights,
           const StripBounds& bounds, float* y) {
  const F32 d;
  const VF factor = hn::Set(d, weights[0]), bias = hn::Set(d, bounds.bias);
  const auto scaled = [&](VF v) HWY_ATTR {
    const VF sum = hn::MulAdd(factor, v, bias);
    return bounds.bounded ? AtMost(d, AtLeast(d, sum, bounds.low), bounds.high) : sum;
  };
  const int64_t end = rows.end * w.out.columns;
  int64_t i = rows.begin * w.out.columns;
  for (; i + kLanes <= end; i += kLanes) hn::StoreU(scaled(hn::LoadU(d, x + i)), d, y + i);
  if (i < end) StorePart(scaled(LoadPart(d, x + i, end - i)), d, y + i, end - i);
}

// kVecs vectors of windows of a single row, from `column` on.
template <int kVecs, bool kWhole>
HWY_INLINE void SlideInRow(const Strips& w, const float* x, int64_t column, const float* weights,
                           const StripBounds& bounds, float* y) {
  const F32 d;
  VF sums[kVecs];
  HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) sums[v] = hn::Zero(d);
  for (int64_t tap = 0, at = column - w.pad.columns; tap < w.kernel.columns; ++tap) {
    const VF weight = hn::Set(d, weights[tap]);
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
      const int64_t first = at + v * kLanes;
      VF seen;
      if constexpr (kWhole) {
        seen = hn::LoadU(d, x + first);
      } else {
        seen = LoadInside(d, x + first, InsideOf(d, first, w.in.columns));
      }
      sums[v] = hn::MulAdd(weight, seen, sums[v]);
    }
    at += w.dilation.columns;
  }
  const VF bias = hn::Set(d, bounds.bias);
  HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
    VF sum = hn::Add(sums[v], bias);
    if (bounds.bounded) sum = AtMost(d, AtLeast(d, sum, bounds.low), bounds.high);
    const int64_t at = column + v * kLanes, live = w.out.columns - at;
    if (live >= kLanes) {
      hn::StoreU(sum, d, y + at);
    } else {
      StorePart(sum, d, y + at, live);
    }
  }
}

void ConvolveRow(const Strips& w, const PlaneRows& rows, const float* x, const float* weights,
                 const StripBounds& bounds, float* y) {
  if (rows.begin == rows.end) return;
  const int64_t reach = (w.kernel.columns - 1) * w.dilation.columns;
  for (int64_t column = 0, step; column < w.out.columns; column += step) {
    const int64_t left = w.out.columns - column, first = column - w.pad.columns;
    const auto slide = [&](auto vectors) HWY_ATTR {
      constexpr int kVecs = decltype(vectors)::value;
      step = kVecs * kLanes;
      if (first >= 0 && first + reach + step <= w.in.columns) {
        SlideInRow<kVecs, true>(w, x, column, weights, bounds, y);
      } else {
        SlideInRow<kVecs, false>(w, x, column, weights, bounds, y);
      }
    };
    // The lanes of a vector after the last window are not stored.
    if (left > 3 * kLanes) {
      slide(std::integral_constant<int, 4>());
    } else if (left > kLanes) {
      slide(std::integral_constant<int, 2>());
    } else {
      slide(std::integral_constant<int, 1>());
    }
  }
}

// Windows of one column: a row of windows combines vectors of the rows that it sees. Pools of NHWC
// planes have such windows.
template <class Window>
void JoinRows(const Strips& w, const PlaneRows& rows, const float* x, const Window& window,
              float* y) {
  const F32 d;
  const int64_t columns = w.out.columns, apart = w.dilation.rows * columns;
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const int64_t top = row * w.stride.rows - w.pad.rows;
    int64_t begin = 0, end = w.kernel.rows;
    while (begin < end && top + begin * w.dilation.rows < 0) ++begin;
    while (end > begin && top + (end - 1) * w.dilation.rows >= w.in.rows) --end;
    const float* const first = x + (top + begin * w.dilation.rows) * columns;
    float* const to = y + row * columns;
    const auto join = [&](int64_t column, auto load) HWY_ATTR {
      if (begin == end) return window.Finish(d, hn::Set(d, Window::kPadding), row, column);
      const float* from = first + column;
      VF value = load(from);
      for (int64_t tap = begin + 1; tap < end; ++tap) {
        from += apart;
        value = window.Join(value, load(from));
      }
      return window.Finish(d, value, row, column);
    };
    int64_t column = 0;
    for (; column + kLanes <= columns; column += kLanes) {
      hn::StoreU(join(column, [&](const float* from) HWY_ATTR { return hn::LoadU(d, from); }), d,
                 to + column);
    }
    if (const int64_t rest = columns - column; rest > 0) {
      StorePart(join(column, [&](const float* from) HWY_ATTR { return LoadPart(d, from, rest); }),
                d, to + column, rest);
    }
  }
}

void LargestOfRows(const Strips& w, const PlaneRows& rows, const float* x, float* y) {
  JoinRows(w, rows, x, LargestElement{}, y);
}

void AverageOfRows(const Strips& w, const PlaneRows& rows, const float* x, const float* row_counts,
                   const float* column_counts, float* y) {
  JoinRows(w, rows, x, AverageElement{row_counts, column_counts}, y);
}

template <int kSize, int kStride>
void Largest(const Strips& w, const PlaneRows& rows, const float* x, float* y) {
  SlideOver<kSize, kStride>(w, rows, x, LargestElement{}, y);
}

template <int kSize, int kStride>
void Average(const Strips& w, const PlaneRows& rows, const float* x, const float* row_counts,
             const float* column_counts, float* y) {
  SlideOver<kSize, kStride>(w, rows, x, AverageElement{row_counts, column_counts}, y);
}

// Returns the size of square windows without gaps that move by one or two either way; 0: others.
int64_t SizeOf(const Strips& s) {
  const bool square = s.kernel.rows == s.kernel.columns && s.stride.rows == s.stride.columns &&
                      s.dilation.rows == 1 && s.dilation.columns == 1;
  return square && s.stride.rows <= 2 ? s.kernel.rows : 0;
}

// Windows of one element: each element has one, and the padding none.
bool IsWhole(const Strips& s) {
  return s.stride.rows == 1 && s.pad.rows == 0 && s.pad.columns == 0 && s.in.rows == s.out.rows &&
         s.in.columns == s.out.columns;
}

// Windows of one column, each of which has one.
bool IsColumn(const Strips& s) {
  return s.kernel.columns == 1 && s.stride.columns == 1 && s.pad.columns == 0 &&
         s.in.columns == s.out.columns && s.in.columns > 1;
}

// Windows of a row that move by one, whose columns are numbers of 31 bits.
bool IsShortRow(const Strips& s) {
  const int64_t reach = s.pad.columns + s.kernel.columns * s.dilation.columns;
  return std::max(s.in.columns, s.out.columns) + reach < INT32_MAX && s.IsRow() &&
         s.stride.columns == 1;
}

PlaneConvolve ConvolveFor(const Strips& s) {
  if (IsShortRow(s) && !IsWhole(s)) return ConvolveRow;
  const bool two = s.stride.rows == 2;
  switch (SizeOf(s)) {
    case 1:
      return IsWhole(s) ? Scale : nullptr;
    case 3:
      return two ? Convolve<3, 2> : Convolve<3, 1>;
    case 5:
      return two ? Convolve<5, 2> : Convolve<5, 1>;
    case 7:
      return two ? Convolve<7, 2> : Convolve<7, 1>;
    default:
      return nullptr;
  }
}

PlaneLargest LargestFor(const Strips& s) {
  if (IsColumn(s)) return LargestOfRows;
  const bool two = s.stride.rows == 2;
  switch (SizeOf(s)) {
    case 2:
      return two ? Largest<2, 2> : Largest<2, 1>;
    case 3:
      return two ? Largest<3, 2> : Largest<3, 1>;
    case 5:
      return two ? Largest<5, 2> : Largest<5, 1>;
    default:
      return nullptr;
  }
}

PlaneAverage AverageFor(const Strips& s) {
  if (IsColumn(s)) return AverageOfRows;
  const bool two = s.stride.rows == 2;
  switch (SizeOf(s)) {
    case 2:
      return two ? Average<2, 2> : Average<2, 1>;
    case 3:
      return two ? Average<3, 2> : Average<3, 1>;
    default:
      return nullptr;
  }
}

}  // namespace

constexpr PlaneKernels kPlaneKernels = {ConvolveFor, LargestFor, AverageFor};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const PlaneKernels& PlaneKernelsFor(Isa isa) { return REPRISE_CHOOSE_TARGET(isa, kPlaneKernels); }

}  // namespace reprise::cpu
#endif  // HWY_ONCE
