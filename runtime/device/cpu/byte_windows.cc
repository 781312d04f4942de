#include "runtime/device/cpu/byte_windows.h"

#include <algorithm>
#include <cstring>

#include "runtime/device/cpu/copy_bytes.h"
#include "runtime/device/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/byte_windows.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// `count` bytes, many as a rule.
HWY_INLINE void CopyVectors(const uint8_t* from, int64_t count, uint8_t* to) {
#if HWY_TARGET != HWY_SCALAR
  const hn::CappedTag<uint8_t, 32> d;  // a store of more takes as long as two
  constexpr int64_t kBytes = hn::MaxLanes(hn::CappedTag<uint8_t, 32>());
  if (count >= kBytes) {
    int64_t i = 0;
    for (; i + kBytes <= count; i += kBytes) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
    if (i < count) hn::StoreU(hn::LoadU(d, from + count - kBytes), d, to + count - kBytes);
    return;
  }
#endif
  CopyBytes(from, count, to);
}

inline void Fill(uint8_t value, int64_t count, uint8_t* to) {
  if (count > 0) std::memset(to, value, static_cast<size_t>(count));
}

// A row of taps of one window: `length` bytes of each, those of neighbouring positions `step` bytes
// apart in `from`, which is the row of the plane. `from` null: all in the padding.
inline uint8_t* SeeTaps(const PlaneAxis& columns, int64_t window, const uint8_t* from, int64_t step,
                        int64_t length, uint8_t zero, uint8_t* to) {
  const int64_t taps = columns.kernel;
  if (from == nullptr) {
    Fill(zero, taps * length, to);
    return to + taps * length;
  }
  const int64_t first = columns.At(window, 0);
  if (columns.dilation == 1 && step == length) {
    const int64_t begin = std::clamp<int64_t>(-first, 0, taps);
    const int64_t end = std::clamp<int64_t>(columns.in - first, begin, taps);
    Fill(zero, begin * length, to);
    CopyVectors(from + (first + begin) * step, (end - begin) * length, to + begin * length);
    Fill(zero, (taps - end) * length, to + end * length);
    return to + taps * length;
  }
  for (int64_t tap = 0; tap < taps; ++tap, to += length) {
    const int64_t at = first + tap * columns.dilation;
    if (at < 0 || at >= columns.in) {
      Fill(zero, length, to);
    } else {
      CopyVectors(from + at * step, length, to);
    }
  }
  return to;
}

// The same of rows that are null where a tap is in the padding.
const uint8_t* RowOfTap(const ByteWindows& p, int64_t window, int64_t tap, const uint8_t* plane,
                        int64_t step) {
  const int64_t y = p.rows.At(window, tap);
  return y < 0 || y >= p.rows.in ? nullptr : plane + y * p.columns.in * step;
}

// A window of plane `x`, at (row, column); returns the end of what it sees.
uint8_t* SeeWindow(const ByteWindows& p, const uint8_t* x, int64_t group, int64_t row,
                   int64_t column, uint8_t zero, uint8_t* to) {
  const int64_t all = p.groups * p.channels;
  if (p.x_last) {
    for (int64_t tap = 0; tap < p.rows.kernel; ++tap) {
      to = SeeTaps(p.columns, column, RowOfTap(p, row, tap, x + group * p.channels, all), all,
                   p.channels, zero, to);
    }
    return to;
  }
  for (int64_t channel = 0; channel < p.channels; ++channel) {
    const uint8_t* const plane = x + (group * p.channels + channel) * p.in_plane();
    for (int64_t tap = 0; tap < p.rows.kernel; ++tap) {
      to = SeeTaps(p.columns, column, RowOfTap(p, row, tap, plane, 1), 1, 1, zero, to);
    }
  }
  return to;
}

// Lines of what `count` windows of row `row` from `column` on see.
void CopyLines(const ByteWindows& p, const uint8_t* x, int64_t group, int64_t row, int64_t column,
               int64_t count, uint8_t zero, uint8_t* lines) {
  const int64_t first = p.columns.At(column, 0);
  const int64_t length = (count - 1) * p.columns.stride + p.columns.kernel;
  const int64_t begin = std::clamp<int64_t>(-first, 0, length);
  const int64_t end = std::clamp<int64_t>(p.columns.in - first, begin, length);
  for (int64_t channel = 0; channel < p.channels; ++channel) {
    const uint8_t* const plane = x + (group * p.channels + channel) * p.in_plane();
    for (int64_t tap = 0; tap < p.rows.kernel; ++tap, lines += p.line_step()) {
      const uint8_t* const from = RowOfTap(p, row, tap, plane, 1);
      if (from == nullptr) {
        Fill(zero, length, lines);
        continue;
      }
      Fill(zero, begin, lines);
      if (end > begin) {
        std::memcpy(lines + begin, from + first + begin, static_cast<size_t>(end - begin));
      }
      Fill(zero, length - end, lines + end);
    }
  }
}

// `count` windows, each of a stretch of every line, copied as a Word: what is behind the taps is
// written over by the next line's.
template <class Word>
void SeeLines(const ByteWindows& p, const uint8_t* lines, int64_t count, uint8_t zero,
              uint8_t* seen) {
  const int64_t number = p.channels * p.rows.kernel, taps = p.columns.kernel;
  for (int64_t i = 0; i < count; ++i, seen += p.row_bytes()) {
    const uint8_t* from = lines + i * p.columns.stride;
    uint8_t* to = seen;
    for (int64_t line = 0; line < number; ++line, from += p.line_step(), to += taps) {
      Word word;
      std::memcpy(&word, from, sizeof(word));
      std::memcpy(to, &word, sizeof(word));
    }
    std::memset(to, zero, 4);
  }
}

void SeeLinesOf(const ByteWindows& p, const uint8_t* lines, int64_t count, uint8_t zero,
                uint8_t* seen) {
  struct Sixteen {
    uint64_t halves[2];
  };
  const int64_t taps = p.columns.kernel;
  if (taps > 8) return SeeLines<Sixteen>(p, lines, count, zero, seen);
  if (taps > 4) return SeeLines<uint64_t>(p, lines, count, zero, seen);
  if (taps > 1) return SeeLines<uint32_t>(p, lines, count, zero, seen);
  return SeeLines<uint8_t>(p, lines, count, zero, seen);
}

void SeeRows(const ByteWindows& p, const uint8_t* x, int64_t group, int64_t first, int64_t count,
             uint8_t zero, uint8_t* seen, uint8_t* lines) {
  const int64_t element_bytes = p.groups * p.channels * p.in_plane();
  const bool by_lines = p.LineBytes() > 0;
  // Stretches of windows in one row.
  for (int64_t windows; count > 0; first += windows, count -= windows) {
    const int64_t row = first / p.columns.out % p.rows.out, column = first % p.columns.out;
    const uint8_t* const element = x + first / p.out_plane() * element_bytes;
    windows = std::min(count, p.columns.out - column);
    if (by_lines) {
      CopyLines(p, element, group, row, column, windows, zero, lines);
      SeeLinesOf(p, lines, windows, zero, seen);
      seen += windows * p.row_bytes();
      continue;
    }
    for (int64_t i = 0; i < windows; ++i, seen += p.row_bytes()) {
      uint8_t* const end = SeeWindow(p, element, group, row, column + i, zero, seen);
      std::memset(end, zero, 4);
    }
  }
}

}  // namespace

constexpr SeeByteWindows kSeeByteWindows = SeeRows;

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

SeeByteWindows SeeByteWindowsFor(Isa isa) { return REPRISE_CHOOSE_TARGET(isa, kSeeByteWindows); }

}  // namespace reprise::cpu
#endif  // HWY_ONCE
