#include "runtime/device/cpu/conv/im2col_lines.h"

#include <algorithm>

#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/conv/im2col_lines.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/simd/inside-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = HWY_LANES(float);
// Narrow lines are copied by columns of vectors, which share their masks; others as they lie in
// memory, which may be far.
constexpr int64_t kNarrow = 4 * kLanes;

// Planes come from memory: the same place of the next one, `plane` floats ahead, is prefetched.
HWY_INLINE VF LoadOrZero(F32 d, const float* line, int64_t at, Inside inside, int64_t plane) {
  if (line == nullptr) return hn::Zero(d);
  __builtin_prefetch(line + at + plane);
  return LoadInside(d, line + at, inside, hn::Zero(d));
}

// `columns` floats of a line that begins `left` columns into the row `x`, zeros outside of it.
HWY_INLINE void CopyLine(const float* HWY_RESTRICT x, int64_t columns, int64_t left, int64_t line,
                         int64_t plane, float* HWY_RESTRICT to) {
  const F32 d;
  const int64_t begin = std::clamp<int64_t>(-left, 0, line);
  const int64_t end = std::clamp(columns - left, begin, line);
  const float* const from = x + left;
  std::fill(to, to + begin, 0.0f);
  int64_t i = begin;
  for (; i + kLanes <= end; i += kLanes) {
    __builtin_prefetch(from + i + plane);
    hn::StoreU(hn::LoadU(d, from + i), d, to + i);
  }
  if (i < end) StorePart(LoadPart(d, from + i, end - i), d, to + i, end - i);
  std::fill(to + end, to + line, 0.0f);
}

// Copies the line of every phase of a row: column `left + phase + i * stride` of `x` is element i.
HWY_INLINE void CopyPhases(const float* HWY_RESTRICT x, int64_t columns, int64_t left,
                           int64_t stride, int64_t phases, int64_t line, int64_t phase_floats,
                           float* HWY_RESTRICT to) {
  if (x == nullptr) columns = 0;
  // Elements of phase `phase` that lie in front of column `column`.
  const auto before = [&](int64_t column, int64_t phase) {
    const int64_t distance = column - left - phase;
    return distance <= 0 ? 0 : std::min((distance + stride - 1) / stride, line);
  };
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const F32 d;
  if (stride == 4 && phases == 4) {
    // Takes all phases of a vector of elements, where all of them lie inside.
    const auto all = [&](int64_t at) HWY_ATTR {
      const float* const from = x + left + 4 * at;
      const VF a = hn::LoadU(d, from), b = hn::LoadU(d, from + kLanes);
      const VF c = hn::LoadU(d, from + 2 * kLanes), e = hn::LoadU(d, from + 3 * kLanes);
      const VF even_low = hn::ConcatEven(d, b, a), odd_low = hn::ConcatOdd(d, b, a);
      const VF even_high = hn::ConcatEven(d, e, c), odd_high = hn::ConcatOdd(d, e, c);
      hn::StoreU(hn::ConcatEven(d, even_high, even_low), d, to + at);
      hn::StoreU(hn::ConcatEven(d, odd_high, odd_low), d, to + at + phase_floats);
      hn::StoreU(hn::ConcatOdd(d, even_high, even_low), d, to + at + 2 * phase_floats);
      hn::StoreU(hn::ConcatOdd(d, odd_high, odd_low), d, to + at + 3 * phase_floats);
    };
    const int64_t first = before(0, 0), last = before(columns, 3);
    if (last - first >= kLanes) {
      for (int64_t phase = 0; phase < 4; ++phase) {
        float* const of = to + phase * phase_floats;
        for (int64_t at = 0; at < first; ++at) {
          const int64_t column = left + phase + 4 * at;
          of[at] = column >= 0 ? x[column] : 0;
        }
      }
      for (i = first; i + kLanes <= last; i += kLanes) all(i);
      if (i < last) {
        all(last - kLanes);
        i = last;
      }
    }
  }
#endif
  for (int64_t phase = 0; phase < phases; ++phase, to += phase_floats) {
    const int64_t first = std::max(i, before(0, phase));
    const int64_t last = std::max(first, before(columns, phase));
    const float* const from = x == nullptr ? nullptr : x + left + phase;
    std::fill(to + i, to + first, 0.0f);
    for (int64_t at = first; at < last; ++at) to[at] = from[at * stride];
    std::fill(to + last, to + line, 0.0f);
  }
}

// Copies lines [begin, end) of one phase of the rows. line(i) is the row of the plane, or null if
// there is none. The last vectors of the lines come first: they may write past a line into the
// next line, which is written later, or into unused space.
template <class Line>
HWY_INLINE void CopyLines(const ConvLines& l, int64_t begin, int64_t end, int64_t left,
                          int64_t floats, const Line& line, float* to) {
  const F32 d;
  const int64_t phases = l.phases.columns, stride = l.stride.columns, columns = l.in.columns;
  const int64_t plane = l.in_plane();
  const int64_t last = (l.line - 1) / kLanes * kLanes;
  if (stride == 1 && end == begin + 1) {
    const float* const x = line(begin);
    // A line without a row holds zeros alone: all of it lies outside.
    CopyLine(x, x == nullptr ? 0 : columns, x == nullptr ? 0 : left, floats, plane,
             to + begin * l.line);
    return;
  }
  if (stride == 1) {
    for (int64_t i = last; i >= 0; i -= kLanes) {
      const Inside inside = InsideOf(left + i, columns);
      for (int64_t row = begin; row < end; ++row) {
        hn::StoreU(LoadOrZero(d, line(row), left + i, inside, plane), d, to + row * l.line + i);
      }
    }
    return;
  }
#if HWY_TARGET != HWY_SCALAR
  if (stride == 2) {
    for (int64_t i = last; i >= 0; i -= kLanes) {
      const int64_t low = left + 2 * i, high = low + kLanes;
      const Inside in_low = InsideOf(low, columns), in_high = InsideOf(high, columns);
      for (int64_t row = begin; row < end; ++row) {
        const VF a = LoadOrZero(d, line(row), low, in_low, plane);
        const VF b = LoadOrZero(d, line(row), high, in_high, plane);
        float* const even = to + row * l.line + i;
        hn::StoreU(hn::ConcatEven(d, b, a), d, even);
        if (phases > 1) hn::StoreU(hn::ConcatOdd(d, b, a), d, even + l.phase_floats);
      }
    }
    return;
  }
#endif
  for (int64_t row = begin; row < end; ++row) {
    CopyPhases(line(row), columns, left, stride, phases, l.line, l.phase_floats, to + row * l.line);
  }
}

void Copy(const ConvLines& l, const Strip& block, const float* x, float* to) {
  const int64_t top = block.first.rows * l.stride.rows - l.pad.rows;
  const int64_t left = block.first.columns * l.stride.columns - l.pad.columns;
  const int64_t lines = block.size.rows + (l.kernel.rows - 1) * l.dilation.rows / l.stride.rows;
  const int64_t at_once = l.line <= kNarrow ? lines : 1;
  // A lone line ends where the last of its windows does.
  const int64_t floats = lines > 1 ? l.line : l.line - (l.block.columns - block.size.columns);
  for (int64_t phase = 0; phase < l.phases.rows; ++phase) {
    const auto line = [&](int64_t i) -> const float* {
      const int64_t at = top + phase + i * l.stride.rows;
      return at >= 0 && at < l.in.rows ? x + at * l.in.columns : nullptr;
    };
    float* const planes = to + phase * l.phases.columns * l.phase_floats;
    for (int64_t i = 0; i < lines; i += at_once) {
      CopyLines(l, i, i + at_once, left, floats, line, planes);
    }
  }
}

void Spread(const float* run, int64_t line, int64_t rows, int64_t columns, float* to, int64_t ld) {
  const F32 d;
  for (int64_t row = 0; row < rows; ++row, run += line, to += ld) {
    int64_t i = 0;
    for (; i + kLanes <= columns; i += kLanes) hn::StoreU(hn::LoadU(d, run + i), d, to + i);
    if (i < columns) StorePart(hn::LoadU(d, run + i), d, to + i, columns - i);
  }
}

}  // namespace

constexpr ConvLineKernels kConvLineKernels = {Copy, Spread};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {
const ConvLineKernels& ConvLineKernelsFor(Isa isa) {
  return REPRISE_CHOOSE_TARGET(isa, kConvLineKernels);
}

void ConvLines::SetBlock(Strips::Extent size, int64_t channels) {
  block = size;
  const Strips::Extent reach = {(kernel.rows - 1) * dilation.rows,
                                (kernel.columns - 1) * dilation.columns};
  phases = {std::min(stride.rows, reach.rows + 1), std::min(stride.columns, reach.columns + 1)};
  line = block.columns + reach.columns / stride.columns;
  const int64_t floats = (block.rows + reach.rows / stride.rows) * line + kVectorFloats;
  phase_floats = (floats + kVectorFloats - 1) / kVectorFloats * kVectorFloats;
  taps.clear();
  const int64_t of_channel = kernel.rows * kernel.columns;
  for (int64_t i = 0; i < channels * of_channel; ++i) {
    const int64_t channel = by_tap ? i % channels : i / of_channel;
    const int64_t tap = by_tap ? i / channels : i % of_channel;
    const int64_t y = tap / kernel.columns * dilation.rows;
    const int64_t x = tap % kernel.columns * dilation.columns;
    const int64_t phase = y % stride.rows * phases.columns + x % stride.columns;
    taps.push_back(static_cast<int32_t>(channel * channel_floats() + phase * phase_floats +
                                        y / stride.rows * line + x / stride.columns));
  }
}

Strip ConvLines::BlockOf(int64_t index) const {
  const int64_t across = counts().columns;
  Strip strip;
  strip.first = {index / across * block.rows, index % across * block.columns};
  strip.size = {std::min(block.rows, out.rows - strip.first.rows),
                std::min(block.columns, out.columns - strip.first.columns)};
  return strip;
}

ItemRange ConvLines::TapsInside(int64_t window, int64_t count) const {
  const int64_t low = window * stride.columns - pad.columns;
  const int64_t high = low + (count - 1) * stride.columns;
  const auto up = [&](int64_t columns) {  // taps that reach this far
    return (std::max<int64_t>(columns, 0) + dilation.columns - 1) / dilation.columns;
  };
  const int64_t begin = std::min(up(-high), kernel.columns);
  return {begin, std::clamp(up(in.columns - low), begin, kernel.columns)};
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
