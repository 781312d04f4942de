#include "runtime/device/cpu/conv/window_tiles.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/types/span.h"
#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/conv/window_tiles.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/simd/inside-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = HWY_LANES(float);

// Rows of windows at a time, or vectors of a row: enough sums to wait for none.
constexpr int64_t kRows = 4;

// Copies row `x` of the operand, or null outside of it. The first window begins at column `left`.
void CopyLine(const Strips& s, const float* x, int64_t left, int64_t columns, float padding,
              float* to) {
  const F32 d;
  const VF pad = hn::Set(d, padding);
  const int64_t stride = s.stride.columns;
  // Planes come from memory: the same place of the next one is prefetched.
  const int64_t plane = s.in.rows * s.in.columns;
  if (x == nullptr) {
    for (int64_t i = 0; i < s.line; i += kLanes) hn::Store(pad, d, to + i);
    return;
  }
  if (stride == 1) {
    for (int64_t i = 0; i < columns; i += kLanes) {
      __builtin_prefetch(x + plane + left + i);
      hn::Store(LoadInside(d, x + left + i, InsideOf(left + i, s.in.columns), pad), d, to + i);
    }
    return;
  }
#if HWY_TARGET != HWY_SCALAR
  if (stride == 2) {
    for (int64_t i = 0; i < columns; i += kLanes) {
      const int64_t low = left + 2 * i, high = low + kLanes;
      __builtin_prefetch(x + plane + low);
      __builtin_prefetch(x + plane + high);
      const VF a = LoadInside(d, x + low, InsideOf(low, s.in.columns), pad);
      const VF b = LoadInside(d, x + high, InsideOf(high, s.in.columns), pad);
      hn::Store(hn::ConcatEven(d, b, a), d, to + i);
      hn::Store(hn::ConcatOdd(d, b, a), d, to + s.phase + i);
    }
    return;
  }
#endif
  const int64_t seen = std::min(stride, (s.kernel.columns - 1) * s.dilation.columns + 1);
  for (int64_t phase = 0; phase < seen; ++phase) {
    for (int64_t i = 0; i < columns; ++i) {
      const int64_t at = left + phase + i * stride;
      to[phase * s.phase + i] = at >= 0 && at < s.in.columns ? x[at] : padding;
    }
  }
}

void Copy(const Strips& s, const Strip& strip, const float* x, float padding, float* copied) {
  const int64_t top = strip.first.rows * s.stride.rows - s.pad.rows;
  const int64_t left = strip.first.columns * s.stride.columns - s.pad.columns;
  const int64_t rows =
      (strip.size.rows - 1) * s.stride.rows + (s.kernel.rows - 1) * s.dilation.rows + 1;
  const int64_t columns =
      strip.size.columns + (s.kernel.columns - 1) * s.dilation.columns / s.stride.columns;
  const int64_t seen = (s.kernel.rows - 1) * s.dilation.rows + 1;  // rows seen within a stride
  for (int64_t row = 0; row < rows; ++row) {
    if (row % s.stride.rows >= seen) continue;
    const int64_t at = top + row;
    const bool inside = x != nullptr && at >= 0 && at < s.in.rows;
    CopyLine(s, inside ? x + at * s.in.columns : nullptr, left, columns, padding,
             copied + row * s.line);
  }
}

// Vectors of windows that are computed together: `count` of them, each `rows` and `columns` after
// the one before it.
struct Together {
  int64_t count, rows, columns;
};
constexpr Together kAlone = {1, 0, 0}, kDown = {kRows, 1, 0}, kAcross = {kRows, 0, kLanes};
template <const Together& together>
using TogetherAs = std::integral_constant<const Together*, &together>;

// Calls `block(copied, row, column, together)` for blocks of vectors of windows, the first of which
// begins at that row and column. Where the rows or the columns do not divide the last block repeats
// some windows, which changes nothing.
template <class Block>
HWY_INLINE void ForEachBlock(const Strips& s, const Strip& strip, const float* copied,
                             const Block& block) {
  const int64_t rows = strip.size.rows, columns = strip.size.columns;
  const auto at = [&](int64_t row, int64_t column, auto together) HWY_ATTR {
    block(copied + row * s.stride.rows * s.line + column, row, column, together);
  };
  constexpr int64_t kWide = kRows * kLanes;
  if (rows < kRows && columns >= kWide) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; column += kWide) {
        at(row, std::min(column, columns - kWide), TogetherAs<kAcross>());
      }
    }
    return;
  }
  for (int64_t first = 0; first < rows; first += rows < kRows ? 1 : kRows) {
    for (int64_t column = 0; column < columns; column += kLanes) {
      if (rows < kRows) {
        at(first, column, TogetherAs<kAlone>());
      } else {
        at(std::min(first, rows - kRows), column, TogetherAs<kDown>());
      }
    }
  }
}

HWY_INLINE void StoreLive(F32 d, VF v, float* y, int64_t live) {
  if (live >= kLanes) {
    hn::StoreU(v, d, y);
  } else {
    StorePart(v, d, y, live);
  }
}

// sums[r] = init, then `add(sum, tap, element)` over all taps, `step` floats from one to the next.
template <int kBlock, class Add>
HWY_INLINE void Taps(const Strips& s, const float* from, int64_t step, VF init, VF (&sums)[kBlock],
                     const Add& add) {
  const F32 d;
  HWY_UNROLL(4) for (int r = 0; r < kBlock; ++r) sums[r] = init;
  const int64_t taps = s.num_taps();
  const int64_t* HWY_RESTRICT offsets = s.taps.data();
  for (int64_t tap = 0; tap < taps; ++tap) {
    const float* HWY_RESTRICT at = from + offsets[tap];
    HWY_UNROLL(4) for (int r = 0; r < kBlock; ++r) {
      sums[r] = add(sums[r], tap, hn::LoadU(d, at + r * step));
    }
  }
}

// Windows of kSize by kSize that begin at each row: an element is loaded once for all of the
// windows that see it.
template <int kSize>
HWY_INLINE void SquareTaps(const Strips& s, const float* from, const float* weights,
                           VF (&sums)[kRows]) {
  const F32 d;
  HWY_UNROLL(4) for (int r = 0; r < kRows; ++r) sums[r] = hn::Zero(d);
  HWY_UNROLL(8) for (int row = 0; row < kSize + kRows - 1; ++row) {
    HWY_UNROLL(8) for (int column = 0; column < kSize; ++column) {
      const VF x = hn::LoadU(d, from + row * s.line + s.kernel_columns[column]);
      HWY_UNROLL(4) for (int r = 0; r < kRows; ++r) {
        if (row - r < 0 || row - r >= kSize) continue;
        sums[r] = hn::MulAdd(hn::Set(d, weights[(row - r) * kSize + column]), x, sums[r]);
      }
    }
  }
}

void Convolve(const Strips& s, const Strip& strip, const float* copied,
              const float* HWY_RESTRICT weights, const StripBounds& bounds, float* y) {
  const F32 d;
  const VF bias = hn::Set(d, bounds.bias);
  const int size = s.stride.rows == 1 && s.dilation.rows == 1 && s.kernel.rows == s.kernel.columns
                       ? static_cast<int>(s.kernel.rows)
                       : 0;
  float* const first = y + strip.first.rows * s.out.columns + strip.first.columns;
  const auto finish = [&](VF sum, int64_t row, int64_t column) HWY_ATTR {
    sum = hn::Add(sum, bias);
    if (bounds.bounded) sum = AtMost(d, AtLeast(d, sum, bounds.low), bounds.high);
    StoreLive(d, sum, first + row * s.out.columns + column, strip.size.columns - column);
  };
  const auto add = [&](VF sum, int64_t tap, VF x)
                       HWY_ATTR { return hn::MulAdd(hn::Set(d, weights[tap]), x, sum); };
  ForEachBlock(s, strip, copied,
               [&](const float* from, int64_t row, int64_t column, auto together) HWY_ATTR {
                 constexpr Together kOf = *decltype(together)::value;
                 const int64_t step = kOf.rows * s.stride.rows * s.line + kOf.columns;
                 VF sums[kOf.count];
                 if constexpr (kOf.rows > 0) {
                   if (size == 3) SquareTaps<3>(s, from, weights, sums);
                   if (size == 5) SquareTaps<5>(s, from, weights, sums);
                 }
                 if (kOf.rows == 0 || (size != 3 && size != 5)) {
                   Taps(s, from, step, hn::Zero(d), sums, add);
                 }
                 HWY_UNROLL(4) for (int r = 0; r < kOf.count; ++r) {
                   finish(sums[r], row + r * kOf.rows, column + r * kOf.columns);
                 }
               });
}

// Windows that are sums or the like: `add` as Taps has it, `finish(value, row, column)` the result.
template <class Add, class Finish>
HWY_INLINE void Pool(const Strips& s, const Strip& strip, const float* copied, VF init, float* y,
                     const Add& add, const Finish& finish) {
  const F32 d;
  float* const first = y + strip.first.rows * s.out.columns + strip.first.columns;
  const auto store = [&](VF value, int64_t row, int64_t column) HWY_ATTR {
    StoreLive(d, finish(value, strip.first.rows + row, strip.first.columns + column),
              first + row * s.out.columns + column, strip.size.columns - column);
  };
  ForEachBlock(s, strip, copied,
               [&](const float* from, int64_t row, int64_t column, auto together) HWY_ATTR {
                 constexpr Together kOf = *decltype(together)::value;
                 const int64_t step = kOf.rows * s.stride.rows * s.line + kOf.columns;
                 VF values[kOf.count];
                 Taps(s, from, step, init, values, add);
                 HWY_UNROLL(4) for (int r = 0; r < kOf.count; ++r) {
                   store(values[r], row + r * kOf.rows, column + r * kOf.columns);
                 }
               });
}

void Largest(const Strips& s, const Strip& strip, const float* copied, float* y) {
  const F32 d;
  Pool(
      s, strip, copied, hn::Set(d, -HUGE_VALF), y,
      [](VF best, int64_t, VF x)
          HWY_ATTR { return hn::IfThenElse(hn::Or(hn::Gt(x, best), hn::IsNaN(x)), x, best); },
      [](VF best, int64_t, int64_t) HWY_ATTR { return best; });
}

void Average(const Strips& s, const Strip& strip, const float* copied, const float* row_counts,
             const float* column_counts, float* y) {
  const F32 d;
  Pool(
      s, strip, copied, hn::Zero(d), y,
      [](VF sum, int64_t, VF x) HWY_ATTR { return hn::Add(sum, x); },
      [&](VF sum, int64_t row, int64_t column) HWY_ATTR {
        return hn::Div(sum,
                       hn::Mul(hn::Set(d, row_counts[row]), hn::LoadU(d, column_counts + column)));
      });
}

}  // namespace

constexpr StripKernels kStripKernels = {Copy, Convolve, Largest, Average};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {
namespace {

// The limit on a copy, which stays in the L1 cache with the operand and the result.
constexpr int64_t kCopyFloats = 7 << 10;
constexpr int64_t kMostColumns = 1024;
// Rows of windows that share elements; see kRows.
constexpr int64_t kFewRows = 4;
// Strips a part, so that none waits long for the others.
constexpr int64_t kStripsOfPart = 4;

int64_t RoundUp(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

}  // namespace

const StripKernels& StripKernelsFor(Isa isa) { return REPRISE_CHOOSE_TARGET(isa, kStripKernels); }

Strips::Extent Strips::counts() const {
  return {(out.rows + strip.rows - 1) / strip.rows,
          (out.columns + strip.columns - 1) / strip.columns};
}

int64_t Strips::CopyFloats() const {
  const int64_t rows = (strip.rows - 1) * stride.rows + (kernel.rows - 1) * dilation.rows + 1;
  return rows * line + kVectorFloats;
}

void Strips::SetStrip(Extent size) {
  strip = size;
  phase = RoundUp(strip.columns + (kernel.columns - 1) * dilation.columns / stride.columns,
                  kVectorFloats);
  line = stride.columns * phase;
  kernel_columns.clear();
  for (int64_t column = 0; column < kernel.columns; ++column) {
    const int64_t shift = column * dilation.columns;
    kernel_columns.push_back(shift % stride.columns * phase + shift / stride.columns);
  }
  taps.clear();
  for (int64_t row = 0; row < kernel.rows; ++row) {
    for (int64_t column : kernel_columns) taps.push_back(row * dilation.rows * line + column);
  }
}

void LayColumnsDown(ops::Windows& windows, Shape& spatial) {
  if (spatial.size() < 2 || spatial.back() != 1 || windows.kernel.back() != 1 ||
      windows.out.back() != 1 || windows.pad_begin.back() != 0 || windows.pad_end.back() != 0) {
    return;
  }
  const auto swap = [](auto& dims) { std::swap(dims[dims.size() - 2], dims[dims.size() - 1]); };
  swap(spatial);
  for (auto* dims : {&windows.kernel, &windows.strides, &windows.dilations, &windows.pad_begin,
                     &windows.pad_end, &windows.out}) {
    swap(*dims);
  }
}

Strips StripsOf(const ops::Windows& windows, const Shape& spatial) {
  const auto extent = [](absl::Span<const int64_t> dims, int64_t rows) {
    return dims.size() == 1 ? Strips::Extent{rows, dims[0]} : Strips::Extent{dims[0], dims[1]};
  };
  Strips s;
  s.in = extent(spatial, 1);
  s.out = extent(windows.out, 1);
  s.kernel = extent(windows.kernel, 1);
  s.stride = extent(windows.strides, 1);
  s.dilation = extent(windows.dilations, 1);
  s.pad = extent(windows.pad_begin, 0);
  return s;
}

Strips PlanStrips(const ops::Windows& windows, const Shape& spatial, int64_t planes, int parts) {
  Strips s = StripsOf(windows, spatial);
  s.SetStrip({.rows = 1, .columns = Even(s.out.columns, kMostColumns)});
  // Takes as many rows as a copy has room for, but leaves some for every part.
  const int64_t beyond = (s.kernel.rows - 1) * s.dilation.rows + 1;
  const int64_t room = (kCopyFloats / s.line - beyond) / s.stride.rows + 1;
  const int64_t columns = std::max<int64_t>(1, planes * s.counts().columns);
  const int64_t wanted = (kStripsOfPart * parts + columns - 1) / columns;
  const int64_t most = std::min(room, (s.out.rows + wanted - 1) / wanted);
  const int64_t few = std::min(kFewRows, s.out.rows);
  s.strip.rows = Even(s.out.rows, std::clamp(most, few, s.out.rows));
  return s;
}

Strips::Extent WholeRows(const Strips& strips, int64_t planes, int parts) {
  const int64_t wanted = (kStripsOfPart * parts + planes - 1) / std::max<int64_t>(planes, 1);
  const int64_t most = std::max(kFewRows, (strips.out.rows + wanted - 1) / wanted);
  return {Even(strips.out.rows, most), strips.out.columns};
}

Strip StripOf(const Strips& strips, int64_t index) {
  const int64_t across = strips.counts().columns;
  Strip strip;
  strip.first = {index / across * strips.strip.rows, index % across * strips.strip.columns};
  strip.size = {std::min(strips.strip.rows, strips.out.rows - strip.first.rows),
                std::min(strips.strip.columns, strips.out.columns - strip.first.columns)};
  return strip;
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
